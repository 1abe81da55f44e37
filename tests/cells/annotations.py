# reads: Config Tensor list str
# binds: C f x
# annotated: Later Other
def f(a: Tensor, *args: "Later", **kw: list["Other"]) -> Config:
    local: NotEvaluated = 1
    return local
class C:
    field: Config
    text: str = ""
x: list[Config] = f()
