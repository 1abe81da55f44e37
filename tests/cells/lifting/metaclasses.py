class Registering(type):
    known = {}
    def __new__(meta, name, bases, namespace, mark="-"):
        cls = super().__new__(meta, name, bases, namespace)
        cls.mark = mark
        Registering.known[name] = cls
        return cls
    def __init__(cls, name, bases, namespace, mark="-"):
        super().__init__(name, bases, namespace)
class Base(metaclass=Registering):
    def who(self):
        return type(self).__name__, self.mark
class Leaf(Base, mark="leaf"):
    value = 3
class Plugin:
    plugins = {}
    def __init_subclass__(cls, /, key=None, **rest):
        super().__init_subclass__(**rest)
        Plugin.plugins[key] = cls
        note(cls)
noted = []
def note(cls):
    noted.append(cls.__name__)
class Csv(Plugin, key="csv"):
    def read(self):
        return "csv read"
class Json(Plugin, key="json"):
    pass
# %%
%%parallel out=back
assert Leaf().who() == ("Leaf", "leaf") and Registering.known["Leaf"] is Leaf and list(Registering.known) == ["Base", "Leaf"]
assert Plugin.plugins["csv"] is Csv and Plugin.plugins["json"] is Json and len(Plugin.plugins) == 2
assert Plugin.plugins["csv"]().read() == "csv read"
assert noted == ["Csv", "Json"], noted
back = [Leaf(), Plugin.plugins["csv"](), Leaf, Registering]
# %%
for leaf, plugin, kind, meta in back:
    assert type(leaf) is Leaf and type(plugin) is Csv and kind is Leaf and meta is Registering
assert noted == ["Csv", "Json"]
