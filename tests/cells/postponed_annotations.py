# reads: field
# binds: C annotations f x
# annotated: Config Tensor int list
from __future__ import annotations
def f(a: Tensor) -> list[Config]: ...
class C:
    a: int = field()
x: int = 1
