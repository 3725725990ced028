"""Hypothesis strategies for reports of every shape that the contract allows."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from unstall.diagnose.patterns import all_patterns
from unstall.records import report as r
from unstall.records.communication import GroupCommunication, NodeCommunication, RankCommunication
from unstall.records.experiments import NotMeasured
from unstall.records.run import Account, RunInfo, StepTime, Throughput, Utilization
from unstall.records.vocabulary import PHASE_NAMES, Confidence, KnownBy

words = st.text(max_size=30)
share = st.floats(0, 1)
amount = st.floats(0, 1e15)
size = st.integers(0, 10**15)
count = st.integers(0, 10**9)
maybe_amount = st.none() | amount
known_by = st.sampled_from(get_args(KnownBy))
ci95 = st.tuples(amount, amount)

caller = st.builds(r.Caller, function=words, file=words, line=count, share=st.none() | share)
callers = st.none() | caller
culprits = st.builds(
    r.Culprit,
    function=words,
    file=words,
    line=count,
    share=share,
    where=st.sampled_from(["main", "worker", "worker 1", "rank 3"]) | words,
    code=words,
    via=words,
    package=words,
    version=words,
    called_by=callers,
    callers=st.lists(caller, max_size=3),
)
findings = st.builds(
    r.Finding,
    pattern=st.sampled_from(sorted(all_patterns())) | words,
    cause=st.none() | words,
    culprit=st.none() | culprits,
    headroom=st.floats(1, 1e6),
    headroom_known_by=known_by,
    confidence=st.sampled_from(get_args(Confidence)),
    evidence=st.lists(words, max_size=6),
    advice=st.lists(words, max_size=4),
    summary=words,
    condition=words,
    share=st.none() | share,
    phases=st.lists(st.sampled_from(PHASE_NAMES), max_size=3).map(tuple),
)
phases = st.lists(
    st.builds(
        r.PhaseTime,
        name=st.sampled_from(PHASE_NAMES) | words,
        share=share,
        mean_s=amount,
        p95_s=amount,
        network_s=amount,
        network_bytes=amount,
        blocked_s=amount,
        wall_s=maybe_amount,
        attributed_s=maybe_amount,
        cpu_s=maybe_amount,
        functions=st.lists(st.builds(r.LineTime, function=words, file=words, line=count, share=share), max_size=3),
        what=words,
    ),
    max_size=11,
    unique_by=lambda phase: phase.name,
)
runs = st.builds(
    RunInfo,
    id=words,
    command=st.lists(words, max_size=4),
    started=st.just("2025-01-01T00:00:00Z"),
    duration_s=amount,
    steps=count,
    exit_code=st.none() | st.integers(-64, 255),
    environment=st.dictionaries(
        st.sampled_from(["cpu_count", "gpus", "torch"]), st.integers(0, 99) | words | st.just([])
    ),
    warmup_steps=count,
    world_size=st.integers(1, 64),
    notes=st.lists(words, max_size=5),
)
throughputs = st.builds(
    Throughput,
    steps_per_s=maybe_amount,
    batches_per_s=maybe_amount,
    samples_per_s=maybe_amount,
    env_steps_per_s=maybe_amount,
    flops_per_s=maybe_amount,
    mfu=st.none() | share,
    step_s=st.none() | st.builds(StepTime, mean=amount, p50=amount, p95=amount),
    flops_coverage=st.none() | share,
)
utilizations = st.builds(
    Utilization,
    cpu=st.none() | share,
    gpu=st.none() | st.lists(share, max_size=4),
    run_delay=st.none() | share,
    rss_peak_bytes=st.none() | size,
    rss_growth_bytes_per_step=maybe_amount,
    gpu_memory_peak_bytes=st.none() | size,
    gpu_memory_growth_bytes_per_step=maybe_amount,
    network_bytes_per_step=maybe_amount,
    disk_read_bytes_per_step=maybe_amount,
    disk_write_bytes_per_step=maybe_amount,
    other_processes_cores=maybe_amount,
)
studies = st.builds(
    r.Study,
    base_s=amount,
    elasticity_sum=maybe_amount,
    elasticity_ci95=st.none() | ci95,
    elasticity_says=words,
    waiting_s=maybe_amount,
    taken_s=maybe_amount,
    disagreements=st.lists(words, max_size=2),
    deeper=st.lists(words, max_size=2),
    failures=st.lists(st.builds(NotMeasured, name=words, intervention=words, why=words), max_size=2),
    untried=st.lists(words, max_size=2),
    sandbox=words,
    runs=count,
)
groups = st.builds(
    GroupCommunication,
    name=words,
    exposed_s=amount,
    calls_per_step=maybe_amount,
    bytes_per_step=maybe_amount,
    ranks=st.lists(st.integers(0, 64), max_size=3),
    device=words,
)
ranks = st.builds(
    RankCommunication,
    rank=st.integers(0, 64),
    step_s=amount,
    own_s=amount,
    exposed_s=amount,
    host=words,
    local_rank=st.none() | st.integers(0, 8),
    groups=st.lists(groups, max_size=3),
    arrives_last=st.none() | share,
)
nodes = st.builds(
    NodeCommunication,
    host=words,
    ranks=st.lists(st.integers(0, 64), max_size=3),
    clock_offset_s=maybe_amount,
    clock_error_s=maybe_amount,
    exit_code=st.none() | st.integers(-9, 3),
    restarts=st.integers(0, 3),
)
communications = st.builds(
    r.Communication,
    ranks=st.lists(ranks, max_size=4),
    unseen=st.lists(st.integers(0, 64), max_size=3),
    waits_least=st.none() | st.integers(0, 64),
    skew_s=maybe_amount,
    late=st.lists(st.integers(0, 64), max_size=3),
    nodes=st.lists(nodes, max_size=3),
)
reports = st.builds(
    r.Report,
    communication=st.none() | communications,
    kind=st.sampled_from(["run", "simplify", "optimize", "trace"]),
    run=runs,
    throughput=throughputs,
    utilization=utilizations,
    phases=phases,
    account=st.none() | st.builds(Account, name=st.just("without_neighbours"), step_s=amount),
    verdict=findings,
    findings=st.lists(findings, max_size=3),
    ceilings=st.lists(
        st.builds(
            r.Ceiling,
            component=words,
            steps_per_s=amount,
            known_by=known_by,
            ci95=st.none() | ci95,
            gap=st.none() | share,
        ),
        max_size=2,
    ),
    experiments=st.lists(
        st.builds(
            r.ReportedExperiment,
            name=words,
            intervention=words,
            ratio=amount,
            ci95=ci95,
            predicted_ratio=maybe_amount,
            segments=st.none() | count,
            conclusive=st.booleans(),
            elasticity=maybe_amount,
            notes=st.lists(words, max_size=2),
        ),
        max_size=2,
    ),
    study=st.none() | studies,
    remedies=st.lists(
        st.builds(
            r.TriedRemedy,
            name=words,
            exactness=st.sampled_from(["exact", "close", "output-changing", "reduced", "training-changing"]),
            kept=st.booleans(),
            speedup=maybe_amount,
            ci95=st.none() | ci95,
            first_epoch_speedup=maybe_amount,
            start_s=maybe_amount,
            sameness=st.none() | st.sampled_from(["exact", "close", "reduced"]),
            equivalent=st.none() | st.booleans(),
            why_not=st.none() | words,
        ),
        max_size=2,
    ),
    total_speedup=maybe_amount,
    total_ci95=st.none() | ci95,
    patch=st.none() | words,
    hotspots=st.lists(
        st.builds(
            r.Hotspot,
            function=words,
            file=words,
            line=count,
            share=share,
            where=words,
            package=words,
            version=words,
            called_by=callers,
        ),
        max_size=2,
    ),
    modules=st.lists(
        st.builds(
            r.ModuleTime,
            name=words,
            type=words,
            calls_per_step=amount,
            forward_s=amount,
            self_s=amount,
        ),
        max_size=7,
    ),
    callbacks=st.lists(
        st.builds(
            r.CallbackTime,
            framework=words,
            callback=words,
            event=words,
            calls=count,
            total_s=amount,
            mean_s=amount,
            share=share,
            step_s=amount,
            file=words,
            line=count,
        ),
        max_size=7,
    ),
    spans=st.lists(st.builds(r.SpanTime, name=words, count=count, total_s=amount, mean_s=amount), max_size=7),
    startup=st.none()
    | st.builds(
        r.Startup,
        before_first_batch_s=amount,
        worker_start_s=amount,
        warmup_s=amount,
        epoch_gaps_s=amount,
        after_last_step_s=amount,
    ),
)
