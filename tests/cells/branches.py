# reads: a b condition late other print
# perhaps: b late
# binds: a_and_b b late sure
if condition:
    sure = 1
    late = a
else:
    sure = 2
print(sure, late)
a_and_b = condition and (b := other)
print(b)
