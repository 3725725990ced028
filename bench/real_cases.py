"""The cases of `make real-bench`: a public repository, the commit before a performance fix, and the fix."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One fix of a public repository."""

    name: str
    repository: str
    """``owner/name`` on GitHub."""
    fixed_in: str
    """Commit of the fix."""
    package: str
    """Name that is imported: a folder of the repository, or a file without its ``.py``."""
    patterns: tuple[str, ...]
    """Verdicts that name what the maintainers mended."""
    fix: str
    """What the maintainers did, in a few words."""
    base: str = ""
    """The last commit without the fix, where that is not the one before."""
    driven_by: str = ""
    """Name of the case whose driver this one shares."""
    version: str = "0"
    """Of the package before the fix."""
    pull: int | None = None
    """The pull request that holds the fix, where no branch does."""
    folder: str = ""
    """Of the repository, that holds the package, where that is not its root."""
    needs: tuple[str, ...] = ()
    """Packages beside those that unstall's own tests need."""

    @property
    def before(self) -> str:
        """The last commit without the fix."""
        return self.base or f"{self.fixed_in}~1"

    @property
    def driver(self) -> str:
        """File name in bench/real."""
        return f"{(self.driven_by or self.name).replace('-', '_')}.py"


_IN_STEP = ("compute-bound", "overhead-bound", "host-bound")
"""Verdicts on slow Python or many small operators in the forward pass."""
_LOADING = ("input-bound",)
_PTF = ("scikit-base",)
_DARTS = ("xarray", "scikit-learn")
_CHEMPROP = ("rdkit",)

CASES: tuple[Case, ...] = (
    Case("recbole-sasrec", "RUCAIBox/RecBole", "a0ea57b54e0f43d918000d174f36022c6b0a052c", "recbox", _IN_STEP,
          "attention mask made by torch, not by NumPy in every step"),
    Case("recbole-narm", "RUCAIBox/RecBole", "ba22a2f7c50691f00501db48c524afeacca7d3fb", "recbox", _IN_STEP,
          "GRU over padded, not over packed sessions"),
    Case("recbole-nais", "RUCAIBox/RecBole", "a754e09fd6a37498d45be6485b84a671a3835b34", "recbox", _IN_STEP,
          "histories in a padded tensor, not cut out of a sparse matrix in every step"),
    Case("recbole-sequential-loader", "RUCAIBox/RecBole", "909f954e5e841be5dad5e63b0fc2b7b5ee3242f4", "recbox",
          _LOADING, "columns as arrays, not a DataFrame cut for every session"),
    Case("recbole-attention-mask", "RUCAIBox/RecBole", "e0948257d8155ea13bed9bae32531aa2d9d5425d", "recbole", _IN_STEP,
          "attention mask in fewer operators", version="1.0.0"),
    Case("recbole-multi-head", "RUCAIBox/RecBole", "2d50a1276efc5b76057eba316ddb4b22647a79e7", "recbole", _IN_STEP,
          "keys permuted once; softmax and square root kept", driven_by="recbole-attention-mask", version="1.0.0"),
    Case("pytorch-forecasting-precompute", "sktime/pytorch-forecasting", "7df1500376753e3f9597ad8518f13d0b24d4692d",
          "pytorch_forecasting", _LOADING, "samples made and collated once (#1850)",
          base="9890f8c9e24adac569b61c651ebeb508da7af21c", pull=1850, version="1.4.0", needs=_PTF),
    Case("pytorch-forecasting-nbeats", "sktime/pytorch-forecasting", "1331d5738257a23cb15189b4210b3d9f9b94bc90",
          "pytorch_forecasting", _IN_STEP, "bases made from one array, not from a list of arrays (#1580)",
          version="1.2.0", needs=_PTF),
    Case("pytorch-forecasting-metric", "sktime/pytorch-forecasting", "6807827212f7895e0d0adeaad7d95351c233fdd4",
          "pytorch_forecasting", ("slows-down", "memory-growth"),
          "errors kept in a list, not joined in every step (#2371)",
          pull=2371, version="1.7.0", needs=_PTF),
    Case("darts-training-arrays", "unit8co/darts", "3249ce23566ddb6804d7006fc116264596dcfde5", "darts",
          _LOADING, "samples cut from arrays, not from TimeSeries (#231)", pull=231, version="0.5.0", needs=_DARTS),
    Case("darts-covariates", "unit8co/darts", "05d4eefec731cfb832749bb9cfcfb2126c6da2a1", "darts",
          _LOADING, "places in the covariates found once for each series (#554)", version="0.13.1", needs=_DARTS),
    Case("darts-arrays", "unit8co/darts", "ac7fce89a343d5280a4071e83a3b10fbe44cecc8", "darts", _LOADING,
         "values of a TimeSeries in an array, not in xarray's (#2807)", version="0.35.0", needs=_DARTS),
    Case("chemprop-cache", "chemprop/chemprop", "6f2d69018377e3e29f16325b2faa625d06f43191", "chemprop",
          _LOADING, "graphs of molecules kept (#697)", version="2.0.0rc1", needs=_CHEMPROP),
    Case("chemprop-bonds", "chemprop/chemprop", "04890fefedad82fe658aac3cece4d01479a621fe", "chemprop",
          _LOADING, "bonds, not pairs of atoms, gone through (#931)", version="2.0.2", needs=_CHEMPROP),
    Case("sentence-transformers-sampler", "huggingface/sentence-transformers",
          "9ea6509dfe415ca47101094e94c222823232d3df", "sentence_transformers", _LOADING,
          "places in an array, not keys that are deleted from a dict (#3658)", version="5.2.2", needs=("datasets",)),
    Case("cleanrl-pqn", "vwxyzjn/cleanrl", "bfe1205136458601438f94e74214625340c7cd99", "cleanrl", _IN_STEP,
          "values of the rollout kept, not computed again (#472)", pull=472, needs=("tyro",)),
    Case("pytorch-examples-reinforce", "pytorch/examples", "74a70e107dbfdc359a3b8c8f44994cfee38ff715",
          "reinforcement_learning", ("host-bound", "overhead-bound"),
          "returns in a deque, not at the front of a list (#1083)"),
    Case("mingpt-zero-grad", "karpathy/minGPT", "1aa67ca5277107b406304c6b35e915c686ad09f6", "mingpt", _IN_STEP,
          "gradients set to None, not to zero"),
    Case("nanogpt-attention", "karpathy/nanoGPT", "ae06d0b15a9111cbe2ce66b0f1be9ae29c1ecbbe", "model",
          ("compute-bound", "overhead-bound"), "attention by scaled_dot_product_attention"),
    Case("x-transformers-rotary", "lucidrains/x-transformers", "872335910fc55ef03631878d2e14bcff0f944631",
          "x_transformers", ("compute-bound", "overhead-bound"), "rotary embedding by halves", version="0.11.1",
          needs=("einops",)),
    Case("x-transformers-flash", "lucidrains/x-transformers", "722d212ff45e18c2dfddf7333a2749aba9fd5f92",
          "x_transformers", ("compute-bound", "overhead-bound"), "attention by scaled_dot_product_attention",
          version="1.12.1", needs=("einops",)),
    Case("metric-learning-triplets", "KevinMusgrave/pytorch-metric-learning",
         "da0a993f7c64740e32f1852246c4855d72cb389b", "pytorch_metric_learning", _IN_STEP,
         "pairs joined to triplets in the whole matrix, not anchor by anchor", version="0.9.97", folder="src"),
    Case("kornia-elastic", "kornia/kornia", "5877e7c683559c3221badef4540d774e2af00ff4", "kornia",
         ("compute-bound", "input-bound"), "two passes in one dimension, not a filter of 63 by 63 (#3817)",
         version="0.8.2", needs=("kornia_rs",)),
    Case("kornia-equalize", "kornia/kornia", "44c44b05bd45f7e6ad947d39e46e55a767091a37", "kornia",
         (*_IN_STEP, "input-bound"), "histograms of the whole batch, not of one channel at a time (#3832)",
         version="0.8.2", needs=("kornia_rs",)),
    Case("torchmetrics-retrieval", "Lightning-AI/torchmetrics", "3bf1491141ef30bf89251f11770cd49d500f3571",
         "torchmetrics", ("host-bound", "overhead-bound"), "sorted and split by query, not item by item (#1242)",
         version="0.10.0", folder="src"),
    Case("opacus-embedding", "pytorch/opacus", "512a1a9c04ba89fd0ba6aa4f919f69502c4b798c", "opacus",
         (*_IN_STEP, "optimizer-bound"), "gradients of a sample added up at its words, not by one-hot matrices (#73)",
         version="0.10.1"),
    Case("opacus-lstm", "pytorch/opacus", "526bef3ecd1aedd04d37976c84c8d8f482680a21", "opacus", _IN_STEP,
         "gradients of all time steps at once, not of a cell for each", version="0.10.1"),
    Case("tabnet-ghost-norm", "dreamquark-ai/tabnet",
         "1642909bd305d40f828be6e0c0484c8f72fd213a", "pytorch_tabnet", _IN_STEP,
         "chunks joined once, not after each", version="1.0.6"),
    Case("qlib-sampler", "microsoft/qlib",
         "d2107c99577793fa7de2f0d8211dd6fe8984c0ce", "qlib", _LOADING,
         "rows out of one array, not one at a time out of a DataFrame", version="0.6.0"),
    Case("kge-entity-ranking", "uma-pi1/kge",
         "27e8a323d208106d7b75f4e003ea4b73c1c5d58d", "kge", ("host-bound", "overhead-bound", "callback-bound"),
         "all known facts of a batch looked up at once", version="0.1"),
    Case("pyg-lcm", "pyg-team/pytorch_geometric",
         "13cbae6daffe5d2b7d4c82eb1ace04bdbb5e5ebd", "torch_geometric", _IN_STEP,
         "all pairs of a level of the tree at once", base="b79a847ed83e09369a26b261e431b8a16cb10e7e",
         version="2.4.0", needs=("pyparsing",)),
    Case("dgllife-weave", "awslabs/dgl-lifesci",
         "c5b3c59be15a4ccc3b647c013c026ff687771475", "dgllife", _LOADING,
         "definitions of features read once, not for each molecule (#206)",
         version="0.3.2", folder="python", needs=("dgl==1.1.3", "rdkit")),
    Case("rainbow-memory", "Kaixhin/Rainbow",
         "fbc23881c651d69da1f7ba92bdab78009d33bf94", "memory", ("input-bound", "host-bound"),
         "transitions sampled all at once from arrays, not one by one (#74)"),
    Case("torchrl-sequences", "pytorch/rl",
         "416941983793f7cbfbee3be5366617b9d07b4a47", "torchrl", ("host-bound", "input-bound"),
         "ends of episodes kept and searched, not compared with each anchor (#4084)",
         version="0.13.0", needs=("tensordict", "pyvers")),
    Case("gail-experts", "ikostrikov/pytorch-a2c-ppo-acktr-gail",
         "4f04391f1dfc718da74d2153f6812b3002d93235", "a2c_ppo_acktr", _LOADING,
         "trajectory of a sample looked up, not searched for"),
    Case("monai-normalize", "Project-MONAI/MONAI",
         "8aabdc917bbf059800968906af22c62b79a6c763", "monai", _LOADING,
         "volume normalized as it is, not through a mask of ones (#6887)", version="1.2.0"),
    Case("slm-lab-replay", "kengz/SLM-Lab",
         "87c0c7b44ae24c55b7df009656fd497052d0ea44", "slm_lab", ("input-bound", "host-bound"),
         "experiences in lists, not in arrays", version="3.2.1", needs=("pydash",)),
    Case("reagent-replay", "facebookresearch/ReAgent",
         "a37e96a3e36b02fd1bbe4b8e4dbbb3700010332c", "ml", ("input-bound", "host-bound"),
         "transitions of a batch gathered from arrays at once, not one by one"),
    Case("pygt-hetero", "benedekrozemberczki/pytorch_geometric_temporal", "89f8595ac5093b80373ed4de5a5fa0b731b2677e",
         "torch_geometric_temporal", (*_IN_STEP, "recompute-bound"),
         "convolutions computed once, not for each kind of node",
         version="0.51.0", needs=("torch_geometric==2.6.1", "six")),
    Case("etna-samples", "tinkoff-ai/etna", "106b98929603b44a4c0f7c89a685b9d023520aeb", "etna",
         ("startup-bound", *_LOADING, "host-bound"), "columns of a series taken once, not for each sample (#1281)",
         version="2.0.0", needs=("statsmodels", "patsy", "loguru")),
    Case("learn2learn-clone", "learnables/learn2learn", "2ae7ad2ee12d638c222bf5395cce66467f3f489d", "learn2learn",
         ("host-bound", "overhead-bound"), "modules copied shallowly, not deeply at every level (#127)",
         version="0.1.0.1"),
    Case("catalyst-balance", "catalyst-team/catalyst", "1c22fd70bf27689ea760a4f4c7fc5a125123e68e", "catalyst",
         _LOADING, "items of a class found in an array at once, not one by one (#921)", version="20.8.3"),
    Case("oml-miner", "OML-Team/open-metric-learning", "3fa41fb5b07d01f9565c32dd8e4ac6d1313b21de", "oml",
         ("host-bound", "overhead-bound"), "hardest triplets found in the whole matrix, not anchor by anchor",
         version="3.1.5"),
    Case("flair-spans", "flairNLP/flair", "dd123888b3763afa1d0ebc1baca9516b542369a3", "flair",
         ("host-bound", "callback-bound"), "spans seen kept in a set, not in a list that is searched", version="0.10",
         needs=("segtok", "deprecated", "tabulate", "more-itertools")),
    Case("skorch-history", "skorch-dev/skorch", "8f50f1ec380766a9c197b0238c5ddb4ad2362ca4", "skorch",
         ("host-bound", "overhead-bound", "callback-bound", "slows-down"),
         "how to read the history found once for a list, not for each item (#730)",
         version="0.9.0", needs=("tabulate",)),
    Case("torch-struct-chain", "harvardnlp/pytorch-struct", "b3ce3b12f584b06ccfba722c4bc150287438e867", "torch_struct",
         _IN_STEP, "potentials of the whole batch put into the chart at once, not of one sentence at a time (#42)",
         version="0.3"),
)  # fmt: skip
