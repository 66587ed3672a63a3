"""The machine code (SASS) of one kernel, as cuobjdump prints it: its loops, and the loads that it has in flight.

What is told here is told without an input: an instruction on a path that is rarely taken counts like any other.
"""
import collections
import re

# A line such as "/*00a0*/  @!P0 LDG.E.128 R4, desc[UR4][R2.64+0x10] ;".
LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P[T\d]+)\s+)?([A-Z][A-Z0-9_.]*)\s*([^;]*);", re.MULTILINE)
REGISTER = re.compile(r"(?<![A-Z0-9])R(\d+)(\.64)?")

Instruction = collections.namedtuple("Instruction", "address guard op operands")
Load = collections.namedtuple("Load", "registers bytes")


def parse(text):
    return [Instruction(int(address, 16), guard, op, operands.strip())
            for address, guard, op, operands in LINE.findall(text)]


def base(instruction):
    return instruction.op.split(".")[0]


def load_bytes(instruction):
    """Bytes per thread that an instruction loads from global memory, 0 for others."""
    if base(instruction) not in ("LDG", "LDGSTS"):
        return 0
    for bits in (256, 128, 64):
        if f".{bits}" in instruction.op:
            return bits // 8
    return 1 if re.search(r"\.[US]8\b", instruction.op) else 2 if re.search(r"\.[US]16\b", instruction.op) else 4


def store_bytes(instruction):
    """The same of stores to global memory."""
    return load_bytes(instruction._replace(op="LDG" + instruction.op[3:])) if base(instruction) == "STG" else 0


def is_local(instruction):
    return base(instruction) in ("LDL", "STL")


def is_generic(instruction):
    """Loads and stores of memory that the compiler does not know the kind of: global, shared or local."""
    return base(instruction) in ("LD", "ST")


def first_operand(instruction):
    return instruction.operands.split(",")[0]


def registers(instruction):
    """The registers that an instruction names, those of wide operands too: rather one too many."""
    wide = 1
    if base(instruction).startswith("ST"):
        wide = 4 if ".128" in instruction.op else 2 if ".64" in instruction.op else 1
    elif ".WIDE" in instruction.op or re.match(r"D[A-Z]+\b", instruction.op) or ".64" in instruction.op:
        wide = 2
    named = set()
    for number, pair in REGISTER.findall(instruction.operands):
        named.update(range(int(number), int(number) + max(wide, 2 if pair else 1)))
    return named


def in_flight(instructions, least):
    """The most bytes that one thread waits for at a time, in loads of at least `least` bytes, on this straight path.

    A load is waited for when an instruction names a register of its result; those issued before it have come by then.
    """
    pending, most = [], 0
    for instruction in instructions:
        if base(instruction) == "DEPBAR":
            pending = [load for load in pending if load.registers]  # copies to shared memory have come
        count = load_bytes(instruction)
        result = set()
        if count and base(instruction) == "LDG":
            first = REGISTER.match(first_operand(instruction))
            result = set(range(int(first[1]), int(first[1]) + max(1, count // 4))) if first else set()
            rest = instruction._replace(operands=instruction.operands.partition(",")[2], op="LDG")
            used = registers(rest) | result
        else:
            used = registers(instruction)
        for position in reversed(range(len(pending))):
            if pending[position].registers & used:
                del pending[:position + 1]
                break
        if count:
            pending.append(Load(result, count))
            most = max(most, sum(load.bytes for load in pending if load.bytes >= least))
    return most


class Code:
    """The instructions of a kernel as a graph. `order` has those that can run, each after what leads to it but for ways
    back; `loops` are the natural ones, {number of the first instruction: numbers of all}, or what runs if none is."""

    def __init__(self, text):
        self.instructions = parse(text)
        self.index = {one.address: number for number, one in enumerate(self.instructions)}
        self.indirect = any(base(one) in ("BRX", "JMX", "BRXU") for one in self.instructions)
        self.after = [self._successors(number) for number in range(len(self.instructions))]
        self.order = self._order()
        self.place = {number: position for position, number in enumerate(self.order)}
        self.before = collections.defaultdict(list)
        for number in self.order:
            for to in self.after[number]:
                self.before[to].append(number)
        self.loops = self._loops() or {0: set(self.order)}

    def _target(self, instruction):
        found = re.findall(r"(?<![\w.])0x([0-9a-f]+)", instruction.operands)
        return self.index.get(int(found[-1], 16)) if found else None

    def _successors(self, number):
        one = self.instructions[number]
        following = [number + 1] if number + 1 < len(self.instructions) else []
        guarded = one.guard not in ("", "PT", "UPT")
        kind = base(one)
        if kind in ("EXIT", "RET", "KILL", "BRX", "JMX", "BRXU"):
            return following if guarded else []
        if kind in ("BRA", "JMP"):
            if ".DIV" in one.op:  # what a warp does whose lanes came apart
                return following
            conditional = guarded or re.match(r"!?U?P\d", one.operands)
            target = self._target(one)
            return ([] if target is None else [target]) + (following if conditional else [])
        if kind == "BSYNC":  # goes on where the BSSY of its barrier says
            barrier = first_operand(one)
            for earlier in reversed(self.instructions[:number]):
                if base(earlier) == "BSSY" and first_operand(earlier) == barrier:
                    target = self._target(earlier)
                    return ([] if target is None else [target]) + (following if guarded else [])
        return following

    def _order(self):
        seen, order, stack = {0}, [], [(0, iter(self.after[0]))] if self.instructions else []
        while stack:
            number, rest = stack[-1]
            step = next((to for to in rest if to not in seen), None)
            if step is None:
                order.append(stack.pop()[0])
            else:
                seen.add(step)
                stack.append((step, iter(self.after[step])))
        return order[::-1]

    def _loops(self):
        """By the dominators of Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm" (2001)."""
        if not self.order:
            return {}
        place, dominator = self.place, {self.order[0]: self.order[0]}

        def common(a, b):
            while a != b:
                while place[a] > place[b]:
                    a = dominator[a]
                while place[b] > place[a]:
                    b = dominator[b]
            return a

        changed = True
        while changed:
            changed = False
            for number in self.order[1:]:
                known = [one for one in self.before[number] if one in dominator]
                new = known[0]
                for one in known[1:]:
                    new = common(new, one)
                if dominator.get(number) != new:
                    dominator[number], changed = new, True
        loops = collections.defaultdict(set)
        for number in self.order:
            for head in self.after[number]:
                if place[head] <= place[number] and common(head, number) == head:
                    body, stack = {head}, [number]
                    while stack:
                        one = stack.pop()
                        if one not in body:
                            body.add(one)
                            stack.extend(self.before[one])
                    loops[head] |= body
        return dict(loops)

    def own(self, head):
        """What a loop holds outside of the loops in it."""
        inner = [body for other, body in self.loops.items() if other != head and other in self.loops[head]]
        return self.loops[head].difference(*inner)

    def per_round(self, head, counts):
        """The most instructions that count on any way through one round of a loop, without the loops in it."""
        own, most = self.own(head), {}
        for number in self.order:
            if number in self.loops[head]:
                earlier = max((most[one] for one in self.before[number] if one in most), default=0)
                most[number] = earlier + (number in own and counts(self.instructions[number]))
        return max(most.values(), default=0)

    def instructions_per_round(self, head):
        return self.per_round(head, lambda one: 1)

    def loads_per_round(self, head, least, most=32):
        """How many loads from global memory, of so many bytes."""
        return self.per_round(head, lambda one: least <= load_bytes(one) <= most)

    def wide_share(self, head, width):
        """Of the bytes that the instructions of a loop, those of the loops in it too, move to and from global memory:
        the share that accesses of `width` bytes move. 0 if there are none."""
        moved = [load_bytes(self.instructions[number]) or store_bytes(self.instructions[number])
                 for number in self.loops[head]]
        return sum(count for count in moved if count >= width) / sum(moved) if any(moved) else 0

    def in_flight(self, head, least):
        """The most bytes that a thread has in flight at a time in a loop, in loads of at least `least` bytes. Ways are
        followed for two rounds (the first may leave loads to the second), straight on where a branch need not be taken;
        what that does not come to begins a way of its own."""
        body, seen, most = self.loops[head], set(), 0
        for start in [head] + sorted(body):
            if start in seen:
                continue
            way, visits, number = [], collections.Counter(), start
            while number is not None and visits[number] < 2:
                visits[number] += 1
                way.append(self.instructions[number])
                inside = [to for to in self.after[number] if to in body]
                number = number + 1 if number + 1 in inside else next(iter(inside), None)
            seen.update(visits)
            most = max(most, in_flight(way, least))
        return most

    def hottest(self):
        """The loop that loads the most bytes per round, in the widest loads of the kernel."""
        widest = max((load_bytes(self.instructions[number]) for number in self.order), default=0)
        return max(self.loops, key=lambda head: self.loads_per_round(head, max(1, widest)))
