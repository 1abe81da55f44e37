# reads: any known numbers print witness
# perhaps: witness
# binds: witness
any((witness := n) in known for n in numbers)
print(witness)
