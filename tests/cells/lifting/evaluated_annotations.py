import dataclasses, typing, inspect
from typing import Optional
class Config:
    rate = 1
def train(config: Config, names: "list[Config]" = (), *rest: int, later: "Later" = None) -> Optional[Config]:
    local: Config = config
    return local
class Later: ...
@dataclasses.dataclass
class Node:
    config: Config
    next: "Optional[Node]" = None
    kind: "Later" = None
    vector: typing.Annotated[int, "units"] = 0
# %%
%%parallel out=back
hints = typing.get_type_hints(train)
assert hints["config"] is Config and hints["names"] == list[Config] and hints["later"] is Later
assert typing.get_type_hints(Node)["next"] == Optional[Node] and typing.get_type_hints(Node)["kind"] is Later
assert dataclasses.fields(Node)[0].type is Config
back = str(inspect.signature(train)), train(Config()), Node(Config())
# %%
assert all(b[0] == str(inspect.signature(train)) and type(b[1]) is Config and type(b[2]) is Node for b in back)
