# reads: print sqrt x
# binds:
# stars: math .local
from math import *
from .local import *
print(sqrt(x))
