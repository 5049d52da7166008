"""20 functions of Python deep, of which two are called by C (map()): for profile.bench. Ends by a signal. Usage: deep.py"""

LEAF = "def work_0():\n    n = 20000\n    while n: n -= 1\n"
PLAIN, BY_C = "def work_{0}(): work_{1}()\n", "def work_{0}(): list(map(lambda _: work_{1}(), (0,)))\n"
# Each turn by C is two functions: the one that calls map(), and the lambda. <module> is the twentieth.
made = LEAF + "".join((BY_C if number in (5, 11) else PLAIN).format(number, number - 1) for number in range(1, 17))
exec(compile(made, __file__, "exec"))
while True:
    work_16()  # noqa: F821
