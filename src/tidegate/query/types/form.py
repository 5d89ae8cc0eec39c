"""Names the calls that sqlglot has classes for, and lists their arguments in order."""

from __future__ import annotations

from sqlglot import exp

FORMS: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Abs: ("abs", ("this",)),
    exp.Acos: ("acos", ("this",)),
    exp.AddMonths: ("add_months", ("this", "expression")),
    exp.Asin: ("asin", ("this",)),
    exp.Atan: ("atan", ("this",)),
    exp.Atan2: ("atan2", ("this", "expression")),
    exp.BitwiseLeftShift: ("shiftleft", ("this", "expression")),
    exp.BitwiseRightShift: ("shiftright", ("this", "expression")),
    exp.Cbrt: ("cbrt", ("this",)),
    exp.Ceil: ("ceil", ("this", "decimals")),
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.Concat: ("concat", ("expressions",)),
    exp.Contains: ("contains", ("this", "expression")),
    exp.Cos: ("cos", ("this",)),
    exp.Cosh: ("cosh", ("this",)),
    exp.Cot: ("cot", ("this",)),
    exp.DateDiff: ("datediff", ("this", "expression")),
    exp.Day: ("day", ("this",)),
    exp.DayOfMonth: ("day", ("this",)),
    exp.DayOfWeek: ("dayofweek", ("this",)),
    exp.DayOfYear: ("dayofyear", ("this",)),
    exp.DecodeCase: ("decode", ("expressions",)),
    exp.Degrees: ("degrees", ("this",)),
    exp.EndsWith: ("endswith", ("this", "expression")),
    exp.Exp: ("exp", ("this",)),
    exp.Floor: ("floor", ("this", "decimals")),
    exp.Greatest: ("greatest", ("this", "expressions")),
    exp.Hour: ("hour", ("this",)),
    exp.IsNan: ("isnan", ("this",)),
    exp.Least: ("least", ("this", "expressions")),
    exp.Left: ("left", ("this", "expression")),
    exp.Length: ("length", ("this",)),
    exp.Ln: ("ln", ("this",)),
    exp.Log: ("log", ("this", "expression")),
    exp.Lower: ("lower", ("this",)),
    exp.Minute: ("minute", ("this",)),
    exp.Month: ("month", ("this",)),
    exp.Nanvl: ("nanvl", ("this", "expression")),
    exp.Negative: ("negative", ("this",)),
    exp.Nullif: ("nullif", ("this", "expression")),
    exp.Nvl2: ("nvl2", ("this", "true", "false")),
    exp.Pi: ("pi", ()),
    exp.Pow: ("power", ("this", "expression")),
    exp.Quarter: ("quarter", ("this",)),
    exp.Radians: ("radians", ("this",)),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.Right: ("right", ("this", "expression")),
    exp.Rint: ("rint", ("this",)),
    exp.Round: ("round", ("this", "decimals")),
    exp.Second: ("second", ("this",)),
    exp.Sign: ("sign", ("this",)),
    exp.Sin: ("sin", ("this",)),
    exp.Sinh: ("sinh", ("this",)),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.StartsWith: ("startswith", ("this", "expression")),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.Tan: ("tan", ("this",)),
    exp.Tanh: ("tanh", ("this",)),
    exp.UnixMicros: ("unix_micros", ("this",)),
    exp.UnixMillis: ("unix_millis", ("this",)),
    exp.UnixSeconds: ("unix_seconds", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.WeekOfYear: ("weekofyear", ("this",)),
    exp.Year: ("year", ("this",)),
}

ALIASES = {
    "pow": "power",
    "signum": "sign",
    "ceiling": "ceil",
    "ucase": "upper",
    "lcase": "lower",
    "len": "length",
    "char_length": "length",
    "character_length": "length",
    "substr": "substring",
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "dayofmonth": "day",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "starts_with": "startswith",
    "ends_with": "endswith",
}

EXTRACTS = {
    "year": "year",
    "years": "year",
    "quarter": "quarter",
    "month": "month",
    "mon": "month",
    "months": "month",
    "week": "weekofyear",
    "weeks": "weekofyear",
    "day": "day",
    "days": "day",
    "doy": "dayofyear",
    "dow": "dayofweek",
    "dayofweek": "dayofweek",
    "hour": "hour",
    "hours": "hour",
    "minute": "minute",
    "minutes": "minute",
    "second": "extract(second)",
    "seconds": "extract(second)",
}


def call_of(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """The name and the arguments of a plain call, or None for what is not one."""
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
