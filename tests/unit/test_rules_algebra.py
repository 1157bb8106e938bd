"""The dialect's algebra, example by example: which spellings meet, and which stay apart."""

from __future__ import annotations

import re

import pytest

from tests.saturation import meet


def spelled(*items: str) -> str:
    """A list of expressions."""
    return "".join(f"(ECons {item} " for item in items) + "(ENil)" + ")" * len(items)


def shorthand(text: str) -> str:
    """Write `z`, `a`, `b` and numbers for what they stand for."""
    text = re.sub(r"(?<=[ (\[])(-?\d+)(?=[ )\]])", r"(MNum \1)", f" {text} ")
    text = re.sub(r"\bz\b", "(MIter)", text)
    return re.sub(r"\b([ab])\b", r'(MVar "\1")', text).strip()


MEET = """
(MAdd (MAdd z 3) 4) = (MAdd z 7)
(MAdd 3 (MAdd z 4)) = (MAdd z 7)
(MSub (MAdd z 3) 4) = (MAdd z -1)
(MAdd (MSub z 3) 3) = z
(MMul (MMul 2 z) 3) = (MMul z 6)
(MMul 2 (MMul (MMul a b) 8)) = (MMul (MMul b a) 16)
(MAdd z 0) = z
(MSub z 0) = z
(MMul 1 z) = z
(MMul z 0) = 0
(MDiv z 1) = z
(MCeilDiv z 1) = z
(MMod z 1) = 0
(MSub z z) = 0
(MMin a a) = a
(MAdd z z) = (MMul z 2)
(MAdd (MMul z 3) z) = (MMul 4 z)
(MAdd z (MMul 3 z)) = (MMul 4 z)
(MAdd (MMul a 3) (MMul a -3)) = 0
(MSub (MMul a 3) a) = (MMul a 2)
(MSub (MMul a 3) (MMul a 5)) = (MMul a -2)
(MDiv (MDiv z 4) 8) = (MDiv z 32)
(MDiv (MMul z 12) 4) = (MMul z 3)
(MMod (MMul z 12) 4) = 0
(MAdd (MMul (MDiv z 4) 4) (MMod z 4)) = z
(MAdd (MMod a 8) (MMul 8 (MDiv a 8))) = a
(MDiv 7 -2) = -3
(MMod -7 2) = -1
(MCeilDiv 7 2) = 4
(MFloorTo 7 4) = 4
(MMin 3 5) = 3
(MMax 3 5) = 5
(MAnd 3 5) = 1
(MAnd z 0) = 0
(MOr 0 0) = 0
(MOr z 7) = 1
(MGte 5 5) = 1
(MGte 4 5) = 0
(MLt 4 5) = 1
(MLt 5 5) = 0
(MMin (MMax z 9) 3) = 3
(MMax (MMin z 3) 9) = 9
(MMin 3 (MMax z 9)) = 3
(MMod (MMax 0 (MMin z 3)) 4) = (MMax 0 (MMin z 3))
(MDiv (MMax 0 (MMin z 3)) 4) = 0
(MLt (MMax 0 (MMin z 3)) 4) = 1
(MGte (MMin z 3) 4) = 0
(MLt (MMod (MMax z 0) 4) 4) = 1
(MDiv (MMul a (MMax b 1)) (MMax b 1)) = a
(MMod (MMax b 1) (MMax b 1)) = 0
(MMod (MMul a (MMax b 1)) (MMax b 1)) = 0
(MLt (MAdd (MMax z 3) (MMax a 4)) 7) = 0
(MLt (MMul (MMax 1 (MMin z 3)) (MMin 4 (MMax a 2))) 13) = 1
(MReplace (MAdd (MMul z 4) a) z b) = (MAdd a (MMul b 4))
(MReplace (MReplace (MMul z a) a 3) z 5) = 15
(RowMajor (ENil)) = (ENil)
(RowMajor [a]) = [z]
(RowMajor [2 3 4]) = [(MMul z 12) (MMul z 4) z]
(RowMajor [a b 4]) = [(MMul z (MMul b 4)) (MMul z 4) z]
(RowMajor [7 a b]) = [(MMul z (MMul b a)) (MMul z b) z]
(MReplaceList (ENil) z 3) = (ENil)
(MReplaceList [(MMul z 4) a] z 3) = [12 a]
(MReplaceList (RowMajor [2 3]) z 1) = [3 1]
(ReplaceNthFromEnd [2 3 4] 0 #0) = [2 3 0]
(ReplaceNthFromEnd [2 3 4] 0 #2) = [0 3 4]
(ReplaceNthFromEnd (RowMajor [2 3]) 0 #1) = [0 z]
(RemoveNthFromEnd [2 3 4] #0) = [2 3]
(RemoveNthFromEnd [2 3 4] #2) = [3 4]
(RowMajor (RemoveNthFromEnd [2 3 4] #1)) = [(MMul z 4) z]
"""
APART = """
(MDiv (MMul z 4) 3) = z
(MDiv (MDiv z -4) 8) = (MDiv z 32)
(MDiv (MMul z a) a) = z
(MDiv a a) = 1
(MMod a 4) = a
(MDiv (MMin a 3) 4) = 0
(MMod (MMin a 3) 4) = (MMin a 3)
(MMod (MMax a 0) 4) = (MMax a 0)
(MDiv (MMul z (MMax 0 b)) (MMax 0 b)) = z
(MAdd (MMul (MDiv a b) b) (MMod a b)) = a
(MReplace a z b) = b
(MReplace (MMul z 2) (MMul z 2) a) = (MMul a 2)
(ReplaceNthFromEnd [2 3] 0 #2) = [2 3]
(RemoveNthFromEnd [2 3] #2) = [2 3]
(RowMajor [2 3]) = [(MMul z 2) z]
9223372036854775807 = (MAdd 9223372036854775807 1)
"""


def lines(text: str) -> list[str]:
    return text.strip().split("\n")


def sides(line: str) -> tuple[str, str]:
    """The two terms of a line; `[a b]` is a list, `#1` a plain number."""
    one, other = (
        re.sub(r"#(\d+)", r"\1", re.sub(r"\[(.*)\]", _spell, shorthand(side)))
        for side in line.split(" = ")
    )
    return one, other


def _spell(match: re.Match[str]) -> str:
    items: list[str] = []
    depth = 0
    for word in re.findall(r"[()]|[^()]+", match[1]):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "(" and depth == 1:
            items.append("")
        if items and (depth or word == ")"):
            items[-1] += word
    return spelled(*items)


@pytest.mark.parametrize("line", lines(MEET))
def test_spellings_of_one_value_meet(line: str) -> None:
    assert meet(*sides(line))


@pytest.mark.parametrize("line", lines(APART))
def test_what_differs_stays_apart(line: str) -> None:
    assert not meet(*sides(line))
