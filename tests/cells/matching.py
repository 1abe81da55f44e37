# reads: Circle Color command kept log print
# perhaps: kept
# binds: args first kept others rest size who x
# attributes: Color.RED
match command:
    case [first, *rest] if first:
        log(rest)
        kept = 1
    case {"who": who, **others}:
        log(who, others)
    case Circle(radius=size) | (Circle(size)):
        log(size)
    case Color.RED | None:
        pass
    case (1 | 2) as x:
        log(x)
print(kept)
match command:
    case [*_]:
        args = 1
    case _:
        args = 2
print(args)
