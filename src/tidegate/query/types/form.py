"""Names the calls that sqlglot parses into classes of their own, and lists their arguments."""

from __future__ import annotations

from sqlglot import exp

_ONE = (
    "Abs Acos Asin Atan Cbrt Cos Cosh Cot Day DayOfWeek DayOfYear Degrees Exp Hour IsNan "
    "Length Ln Lower Minute Month Negative Quarter Radians Rint Second Sign Sin Sinh Sqrt Tan Tanh "
    "Upper WeekOfYear Year"
)
_TWO = "Atan2 Contains DateDiff EndsWith Left Log Nanvl Nullif Right StartsWith"

FORMS: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    **{getattr(exp, name): (name.lower(), ("this",)) for name in _ONE.split()},
    **{getattr(exp, name): (name.lower(), ("this", "expression")) for name in _TWO.split()},
    exp.AddMonths: ("add_months", ("this", "expression")),
    exp.BitwiseLeftShift: ("shiftleft", ("this", "expression")),
    exp.BitwiseRightShift: ("shiftright", ("this", "expression")),
    exp.Ceil: ("ceil", ("this", "decimals")),
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.Concat: ("concat", ("expressions",)),
    exp.DayOfMonth: ("day", ("this",)),
    exp.DecodeCase: ("decode", ("expressions",)),
    exp.Floor: ("floor", ("this", "decimals")),
    exp.Greatest: ("greatest", ("this", "expressions")),
    exp.Least: ("least", ("this", "expressions")),
    exp.Nvl2: ("nvl2", ("this", "true", "false")),
    exp.Pi: ("pi", ()),
    exp.Pow: ("power", ("this", "expression")),
    exp.RegexpSplit: ("split", ("this", "expression", "limit")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.Round: ("round", ("this", "decimals")),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.UnixMicros: ("unix_micros", ("this",)),
    exp.UnixMillis: ("unix_millis", ("this",)),
    exp.UnixSeconds: ("unix_seconds", ("this",)),
}
"""For sqlglot's class of a call: its name here, and the slots of its arguments in order."""


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


ALIASES = _pairs(
    "pow=power signum=sign ceiling=ceil ucase=upper lcase=lower len=length char_length=length "
    "character_length=length substr=substring nvl=coalesce ifnull=coalesce dayofmonth=day "
    "date_diff=datediff dateadd=date_add starts_with=startswith ends_with=endswith"
)
EXTRACTS = _pairs(
    "year=year years=year quarter=quarter month=month mon=month months=month week=weekofyear "
    "weeks=weekofyear day=day days=day doy=dayofyear dow=dayofweek dayofweek=dayofweek hour=hour "
    "hours=hour minute=minute minutes=minute second=extract(second) seconds=extract(second)"
)


def call_of(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """The name and arguments of a plain call; None for anything else."""
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        return ALIASES.get(name, name), list(node.expressions)
    if isinstance(node, exp.Extract):
        field = str(node.this.name).lower()
        return EXTRACTS.get(field, f"extract({field})"), [node.expression]
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        name = "date_trunc" if isinstance(node, exp.TimestampTrunc) else "trunc"
        return name, [exp.Literal.string(node.args["unit"].name), node.this]
    if isinstance(node, exp.Trim):
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "trim")
        return name, [a for a in (node.this, node.expression) if a]
    if isinstance(node, exp.TsOrDsAdd) and str(node.args["unit"].name).upper() == "DAY":
        return "date_add", [node.this, node.expression]
    form = FORMS.get(type(node))
    if form is None or (isinstance(node, exp.DateDiff) and node.args.get("unit")):
        return None
    return form[0], _arguments(node, form[1])


def _arguments(node: exp.Expr, keys: tuple[str, ...]) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for key in keys:
        value = node.args.get(key)
        found += value if isinstance(value, list) else [value] if value is not None else []
    return found
