"""What a person without nbshm writes: the function in a module of its own, so that a child can import it."""


def square(rank):
    return rank**2


def fill(rank, made):
    made[rank].fill_(rank)
