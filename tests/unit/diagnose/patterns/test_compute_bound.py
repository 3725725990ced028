"""Compute-bound: the mathematics itself."""

from __future__ import annotations

import msgspec
import pytest
from factory import (
    BACKWARD,
    CALL,
    STEP,
    Source,
    measurement,
    stack,
)
from patterncase import check, host_findings, match, module, training_sites

from unstall.records.measurements import (
    LoaderMeasurement,
)
from unstall.records.model import DroppedGradients, ModelMeasurement, OperatorLine, ZeroProducts
from unstall.records.observations import Frame


def test_compute_bound_by_double_precision(code):
    finding = check(
        match("compute-bound", model=ModelMeasurement(dtype="torch.float64", threads=4), sites=training_sites(code)),
        "compute-bound",
    )
    assert (finding.cause, finding.culprit.function) == ("precision", "main")
    assert finding.next_step is None, "the times of the modules say no more of it"


@pytest.mark.parametrize("of_gradients", [False, True])
def test_compute_bound_by_products_with_zeros(code, of_gradients):
    frames = (code.at("main", "# model"), code.at("suppress", "# suppress"))
    products = ZeroProducts(frames, 0.97, of_gradients, forward=0.5, backward=0.4)
    finding = check(match("compute-bound", model=ModelMeasurement(threads=4), zero_products=products), "compute-bound")
    assert (finding.cause, finding.culprit.function) == ("zeros", "suppress")
    assert any("97 % of the" in line for line in finding.evidence)
    assert ("loss depends on" in finding.advice[0]) == of_gradients


def test_few_products_with_zeros_are_no_matter(code):
    products = ZeroProducts((code.at("main", "# model"),), 0.97, False, forward=0.1, backward=0.05)
    assert match("compute-bound", model=ModelMeasurement(threads=4), zero_products=products) is None


def test_compute_bound_by_threads_that_are_not_used():
    finding = check(match("compute-bound", model=ModelMeasurement(threads=1), cores=8.0), "compute-bound", headroom=2)
    assert finding.cause == "threads"


@pytest.mark.parametrize(
    ("file", "cause"), [("/program/quant.py", "model"), ("/env/site-packages/torch/x.py", "threads")]
)
def test_a_layer_of_the_programs_own_is_blamed_before_threads_that_may_be_limited_on_purpose(file, cause):
    modules = [module("packed", "Packed", 0.9, file=file), module("a", "Norm", 0.05), module("b", "Norm", 0.05)]
    finding = match("compute-bound", modules=modules, model=ModelMeasurement(threads=1), cores=2.0)
    assert finding.cause == cause


def test_an_optimizer_of_the_programs_own_is_named_by_what_it_computes(tmp_path, code):
    text = "class Muon:\n    def step(self):\n        orthogonalize(1)  # step\n\n"
    text += "def orthogonalize(x):\n    return x @ x.mT  # square\n"
    muon = Source(tmp_path / "muon.py", text)
    line = stack(code.at("main", "# optimizer"), STEP, muon.at("step", "# step"), muon.at("orthogonalize", "# square"))
    finding = match(
        "compute-bound",
        {"forward": 0.02, "backward": 0.02, "optimizer": 0.06},
        model=ModelMeasurement(threads=4),
        sites=training_sites(code),
        samples=[line],
    )
    assert (finding.cause, finding.culprit.function) == ("optimizer", "orthogonalize")
    assert "the program's own update" in finding.advice[0]


def test_compute_bound_by_the_optimizer(code):
    finding = check(
        match(
            "compute-bound",
            {"forward": 0.02, "backward": 0.02, "optimizer": 0.06},
            model=ModelMeasurement(threads=4),
            sites=training_sites(code),
        ),
        "compute-bound",
    )
    assert (finding.cause, finding.culprit.line) == ("optimizer", code.line("# optimizer"))


def test_compute_bound_by_gradients_that_nothing_uses(tmp_path):
    net = Source(tmp_path / "net.py", "class Net:\n    def forward(self, x):  # forward\n        return x\n")
    model = ModelMeasurement(
        threads=4, file=net.file, line=net.line("# forward"), gradients=100, updated=5, idle_parts=("backbone", "neck")
    )
    found = match("compute-bound", {"forward": 0.03, "backward": 0.07}, model=model)
    finding = check(found, "compute-bound", headroom=1 / (1 - 0.7 * 0.95))
    assert (finding.cause, finding.culprit.function, finding.culprit.line) == ("gradients", "Net.forward", 2)
    assert (
        "95 % of the gradients that backward computes (`backbone`, `neck`) are used by no optimizer" in finding.evidence
    )


def test_compute_bound_by_gradients_that_are_dropped_blames_the_call_on_the_way(tmp_path):
    text = "def judge(real):\n    made = sample(len(real))  # made\n    return loss(made)\n"
    made = Source(tmp_path / "train.py", text)
    dropped = DroppedGradients((made.at("judge", "# made"),), "Generator", 0.5)
    found = match(
        "compute-bound", {"forward": 0.03, "backward": 0.07}, model=ModelMeasurement(threads=4, dropped=dropped)
    )
    finding = check(found, "compute-bound", headroom=1 / (1 - 0.7 * 0.5))
    assert (finding.cause, finding.culprit.function, finding.culprit.line) == ("gradients", "judge", 2)
    assert "50 % of backward computes gradients of Generator that are dropped before it learns" in finding.evidence
    never = ModelMeasurement(threads=4, dropped=msgspec.structs.replace(dropped, model="Teacher", never=True))
    finding = match("compute-bound", {"forward": 0.03, "backward": 0.07}, model=never)
    assert "50 % of backward computes gradients of Teacher that no optimizer uses" in finding.evidence


def test_compute_bound_by_padding_blames_what_makes_the_batch(tmp_path):
    text = "class Collator:\n    def __call__(self, rows):  # collate\n        return pad(rows)\n"
    made = Source(tmp_path / "data.py", text)
    loader = LoaderMeasurement(collate="Collator", collate_at=(made.file, made.line("# collate")))
    model = ModelMeasurement(threads=4, padding=0.6, spare=0.5)
    found = match("compute-bound", {"forward": 0.03, "backward": 0.07}, model=model, loader=loader)
    finding = check(found, "compute-bound", headroom=2.4)
    assert (finding.cause, finding.culprit.function) == ("padding", "Collator.__call__")
    assert "60 % of the positions in a batch are padding, 50 % in every row" in finding.evidence
    of_a_library = LoaderMeasurement(
        collate="default_collate",
        collate_at=("/usr/lib/python3/site-packages/torch/utils/data/_utils/collate.py", 363),
        samples_at=(made.file, made.line("# collate")),
    )
    found = match("compute-bound", {"forward": 0.03, "backward": 0.07}, model=model, loader=of_a_library)
    assert found.culprit.function == "Collator.__call__", "what makes a sample"
    for elsewhere in (None, LoaderMeasurement(collate="", collate_at=("", 0))):  # the program makes its batches
        finding = match("compute-bound", {"forward": 0.03, "backward": 0.07}, model=model, loader=elsewhere)
        assert finding.cause == "padding" and finding.culprit is None, "no line is known"


@pytest.mark.parametrize("packs", [False, True])
def test_padding_that_a_program_packs_is_not_computed_on(tmp_path, packs):
    call = "pack_padded_sequence(x, lengths)" if packs else "drop(x)"
    net = Source(
        tmp_path / "net.py", f"class Net:\n    def forward(self, x, lengths):\n        return self.gru({call})\n"
    )
    model = ModelMeasurement(threads=4, padding=0.6, file=net.file)
    found = match("compute-bound", {"forward": 0.03, "backward": 0.07}, model=model)
    assert (found is None) is packs


def test_compute_bound_by_a_gradient_blames_the_line_that_it_is_of(tmp_path):
    text = "class Net:\n    def forward(self, x):\n        return [self.cell(x[:, t]) for t in range(99)]  # parts\n"
    made = Source(tmp_path / "net.py", text)
    operators = [OperatorLine((made.at("forward", "# parts"),), 0.1, 8.0, "SelectBackward0"), OperatorLine((), 0, 2.0)]
    model = ModelMeasurement(threads=4)
    found = match("compute-bound", {"forward": 0.02, "backward": 0.08}, model=model, operators=operators)
    finding = check(found, "compute-bound", headroom=2.7)
    assert (finding.cause, finding.culprit.function, finding.culprit.line) == ("backward", "Net.forward", 3)
    assert any("80× what its operators take in forward: SelectBackward0" in line for line in finding.evidence)
    assert any("unbind" in line for line in finding.advice)


def test_compute_bound_by_what_backward_calls_blames_the_hook(tmp_path):
    text = (
        "def per_sample(layer, given):\n    return given @ layer  # product\n\n\n"
        "def main(model, loader):\n    for x in loader:\n        model(x).backward()  # backward\n"
    )
    made = Source(tmp_path / "train.py", text)
    calling = made.at("main", "# backward")
    samples = [
        stack(calling, BACKWARD, made.at("per_sample", "# product"), count=70),
        stack(calling, BACKWARD, count=30),
    ]
    found = match(
        "compute-bound", {"forward": 0.02, "backward": 0.08}, samples=samples, model=ModelMeasurement(threads=4)
    )
    finding = check(found, "compute-bound", headroom=2.2)
    assert (finding.cause, finding.culprit.function) == ("hooks", "per_sample")
    assert "56 % of a step is Python code that backward calls, like hooks" in finding.evidence


@pytest.mark.parametrize(("forward_s", "found"), [(6.0, True), (0.5, False)])
def test_compute_bound_by_a_tensor_that_is_joined_piece_by_piece(tmp_path, forward_s, found):
    text = "class Ghost:\n    def forward(self, parts):\n        return torch.cat([self.res, parts])  # join\n"
    made = Source(tmp_path / "net.py", text)
    paths = ((made.at("forward", "# join"),), (Frame("main", "/p/train.py", 1), made.at("forward", "# join")))
    operators = [
        *(OperatorLine(path, forward_s / 2, 0.1, "CatBackward0") for path in paths), OperatorLine((), 4.0, 8.0)
    ]  # fmt: skip
    model = ModelMeasurement(threads=4)
    finding = match("compute-bound", {"forward": 0.07, "backward": 0.03}, model=model, operators=operators)
    assert (finding is not None and finding.cause == "copies") is found
    if found:
        assert (finding.culprit.function, finding.culprit.line) == ("Ghost.forward", 3)
        assert any("only moves data: CatBackward0" in line for line in finding.evidence)


@pytest.mark.parametrize("type_name, cause", [("Conv2d", "kernel"), ("Attention", "model")])
def test_compute_bound_by_a_layer_out_of_proportion(type_name, cause):
    modules = [module("big", type_name, 0.9), module("a", "Linear", 0.05), module("b", "Linear", 0.05)]
    finding = check(match("compute-bound", modules=modules, model=ModelMeasurement(threads=4)), "compute-bound")
    assert finding.cause == cause
    assert any("big" in line for line in finding.evidence)
    assert "--modules" in finding.next_step.option


@pytest.mark.parametrize(
    ("forward", "cause"), [("F.conv2d(x, self.weight)", "kernel"), ("x.index_add(0, self.to, x[self.of])", "model")]
)
def test_a_convolution_of_a_graph_is_no_kernel(tmp_path, forward, cause):
    net = Source(tmp_path / "net.py", f"class Conv:\n    def forward(self, x):  # forward\n        return {forward}\n")
    conv = msgspec.structs.replace(module("conv", "Conv", 0.9, file=net.file), line=net.line("# forward"))
    modules = [conv, module("a", "Linear", 0.05), module("b", "Linear", 0.05)]
    assert match("compute-bound", modules=modules, model=ModelMeasurement(threads=4)).cause == cause


def test_the_rate_of_a_recurrent_model_blames_no_layer():
    poor = ModelMeasurement(threads=4, flops=1e8, peak_flops=1e11, flops_coverage=1.0)
    for kind, found in (("Linear", True), ("GRU", False)):
        layers = [module(f"layer{n}", kind, 0.1, file="/env/site-packages/torch/rnn.py") for n in range(8)]
        assert (match("compute-bound", modules=layers, model=poor) is not None) is found


def test_an_even_model_at_a_good_rate_is_not_compute_bound():
    modules = [module(f"layer{n}", "Linear", 0.1, file="/env/site-packages/torch/linear.py") for n in range(8)]
    model = ModelMeasurement(threads=4, dtype="torch.float32", flops=6e9, peak_flops=1e11, flops_coverage=1.0)
    assert match("compute-bound", modules=modules, model=model) is None


def test_the_culprit_lies_in_the_layer_out_of_proportion_and_a_layer_without_a_gradient_costs_forward_only(tmp_path):
    text = "class Equalize:\n    def forward(self, x):\n        return histogram(x)  # hist\n\n"
    text += "def histogram(x):\n    return x.sort()  # sort\n\n"
    text += "model(equalize(x))  # augment\nmodel(x)  # model\n"
    net = Source(tmp_path / "net.py", text)
    inside = [net.at("<module>", "# augment"), CALL, net.at("forward", "# hist"), net.at("histogram", "# sort")]
    samples = [stack(*inside, count=40), stack(net.at("<module>", "# model"), CALL, count=10)]
    samples += [stack(net.at("<module>", "# model"), BACKWARD, count=50)]
    lines = [
        OperatorLine((net.at("<module>", "# augment"), net.at("forward", "# hist")), 4.0, 0.0),
        OperatorLine((net.at("<module>", "# model"),), 1.0, 1.0, "ConvolutionBackward0"),
    ]
    modules = [module("", "Equalize", 0.8, file=net.file), module("a", "Norm", 0.1), module("b", "Norm", 0.1)]
    modules[0] = msgspec.structs.replace(modules[0], line=net.line("def forward"))
    finding = match(
        "compute-bound",
        {"forward": 0.05, "backward": 0.05},
        model=ModelMeasurement(threads=4),
        modules=modules,
        samples=samples,
        operators=lines,
    )
    assert (finding.cause, finding.culprit.function) == ("model", "histogram")
    assert finding.headroom == pytest.approx(1 / (1 - 0.4), rel=0.05)


ATTENTION = """
    class Attention:
        def forward(self, q, k, v):
            scores = q @ k.transpose(-2, -1)  # scores
            scores = scores.masked_fill(self.mask, -1e9)  # mask
            weights = scores.softmax(-1)  # softmax
            y = weights @ v  # sum
            return self.out(y)  # out
"""


@pytest.mark.parametrize(
    "nodes, share, found",
    [
        ({"scores": "BmmBackward0", "softmax": "SoftmaxBackward0", "sum": "BmmBackward0"}, 0.5, True),
        ({"scores": "BmmBackward0", "softmax": "SoftmaxBackward0", "sum": "BmmBackward0"}, 0.1, False),
        ({"scores": "BmmBackward0", "softmax": "ReluBackward0", "sum": "BmmBackward0"}, 0.5, False),
        ({"softmax": "SoftmaxBackward0", "sum": "BmmBackward0", "out": "BmmBackward0"}, 0.5, False),
        ({"scores": "MulBackward0", "softmax": "SoftmaxBackward0", "sum": "SumBackward0"}, 0.5, False),
    ],
)
def test_compute_bound_by_attention_in_separate_operators(tmp_path, nodes, share, found):
    net = Source(tmp_path / "net.py", ATTENTION)
    part = share / (len(nodes) + 1)
    lines = [OperatorLine((net.at("forward", f"# {mark}"),), part, part, node) for mark, node in nodes.items()]
    lines += [OperatorLine((net.at("forward", "# mask"),), part, part, "MaskedFillBackward0")]
    lines += [OperatorLine((Frame("forward", "mlp.py", 3),), 1 - share, 1 - share, "AddmmBackward0")]
    finding = match(
        "compute-bound", {"forward": 0.05, "backward": 0.05}, model=ModelMeasurement(threads=4), operators=lines
    )
    assert (finding is not None and finding.cause == "attention") is found
    if found:
        assert finding.culprit.function == "Attention.forward"
        assert finding.headroom == pytest.approx(1 / (1 - share))


def test_a_cure_of_one_line_leads_though_it_gains_little(tmp_path):
    net = Source(tmp_path / "net.py", ATTENTION)
    marks = {"scores": "BmmBackward0", "softmax": "SoftmaxBackward0", "sum": "BmmBackward0"}
    lines = [OperatorLine((net.at("forward", f"# {mark}"),), 0.12, 0.12, node) for mark, node in marks.items()]
    lines += [OperatorLine((Frame("forward", "mlp.py", 3),), 0.64, 0.64, "AddmmBackward0")]
    good = {"threads": 4, "flops": 5e9, "peak_flops": 1e11, "flops_coverage": 1.0, "batch_size": 32}
    verdict, *_ = host_findings(
        measurement({"forward": 0.05, "backward": 0.05}, model=ModelMeasurement(**good), operators=lines)
    )
    assert (verdict.pattern, verdict.cause) == ("compute-bound", "attention")


@pytest.mark.parametrize(("pages", "said"), [(30_000.0, True), (10.0, False)])
def test_pages_that_the_kernel_gives_anew_are_told_with_what_keeps_them(pages, said):
    finding = match(
        "compute-bound",
        model=ModelMeasurement(threads=1),
        cores=8.0,
        main_cpu_s=0.1,
        main_kernel_s=0.04,
        page_faults=pages,
    )
    assert any(line == "page faults take 40 % of a step, 40 ms: the kernel gives it 30,000 pages of memory anew" for line in
               finding.evidence) == said  # fmt: skip
    assert any("mallopt" in line for line in finding.advice) == said


@pytest.mark.parametrize("batch_is_gone_through", [False, True])
def test_the_training_loop_itself_is_no_loop_that_one_operator_could_stand_for(tmp_path, batch_is_gone_through):
    each = "for part in batch" if batch_is_gone_through else "if batch"
    code = Source(
        tmp_path / "train.py",
        f"""
        for batch in batches:
            {each}:
                out = model(batch)  # model
            loss.backward()  # backward
            optimizer.step()  # optimizer
        """,
    )
    sites = [code.site(f"~{seam}", "<module>", f"# {seam}") for seam in ("backward", "optimizer")]
    sites.append(code.site("~forward", "<module>", "# model"))
    poor = ModelMeasurement(threads=4, flops=1e8, peak_flops=1e11, flops_coverage=1.0)
    finding = match("compute-bound", {"forward": 0.05, "backward": 0.05}, model=poor, sites=sites)
    assert finding.culprit.line == code.line("# model")
    assert any("stands in a loop" in line for line in finding.advice) is batch_is_gone_through
