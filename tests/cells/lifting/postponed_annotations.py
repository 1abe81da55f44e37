from __future__ import annotations
import dataclasses, typing
from dataclasses import KW_ONLY
from typing import Optional, ClassVar, TYPE_CHECKING
if TYPE_CHECKING:
    from nowhere import Missing
class Config:
    rate = 1
def train(config: Config, missing: Missing = None) -> Optional[Config]:
    return config
def good(x: Tree, y: dict[str, Config]) -> int:
    return 1
@dataclasses.dataclass
class Tree:
    left: Optional[Tree] = None
    config: Config = dataclasses.field(default_factory=Config)
    limit: ClassVar[int] = 3
@dataclasses.dataclass
class Mixed:
    x: int
    _: KW_ONLY
    y: int = 2
class Third(typing.NamedTuple):
    tree: Tree
# %%
%%parallel out=back
hints = typing.get_type_hints(Tree)
assert hints["left"] == Optional[Tree] and hints["config"] is Config, hints
assert typing.get_type_hints(good) == {"x": Tree, "y": dict[str, Config], "return": int}
assert train.__annotations__["missing"] == "Missing" and typing.get_type_hints(Third)["tree"] is Tree
assert [f.name for f in dataclasses.fields(Tree)] == ["left", "config"]
assert Mixed(1, y=3) == Mixed(x=1, y=3)
back = Tree(Tree()), train(Config()), Third(Tree())
# %%
assert all(type(t.left) is Tree and type(c) is Config and type(n) is Third for t, c, n in back)
