# reads: ImportError KeyError ValueError error print risky state value
# perhaps: error state value
# binds: error numpy state value
try:
    import numpy
except ImportError:
    numpy = None
print(numpy)
try:
    value = risky()
    state = 1
except (KeyError, ValueError) as error:
    print(error, state)
print(error, value)
