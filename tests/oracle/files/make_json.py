"""Makes json_cases.txt for tests/files/json_test.cpp with Python's json: for every text a line with the text and one with
what Python makes of it (its own text, with sorted keys off and separators ", " and ": "), or "refused". Texts have no
line breaks. Run it in its own folder."""
import json
import random

random.seed(5)


def value(depth):
    kind = random.randrange(9 if depth < 4 else 6)
    if kind == 0:
        return random.choice([None, True, False])
    if kind == 1:
        return random.choice([0, 1, -1, 2**31, -2**63, 2**63 - 1, random.randrange(-10**6, 10**6)])
    if kind == 2:
        return random.choice([0.5, -0.0, 1e300, 5e-324, 1 / 3, random.uniform(-1e6, 1e6), float(random.randrange(10**6))])
    if kind < 6:
        return "".join(random.choice("ab \"\\/\n\t\x00\x1f\x7féß€😀\u2028") for _ in range(random.randrange(8)))
    if kind == 6 or kind == 7:
        return [value(depth + 1) for _ in range(random.randrange(5))]
    return {f"{random.choice('abcde')}{i}": value(depth + 1) for i in range(random.randrange(5))}


texts = []
for _ in range(120):
    v = value(0)
    texts.append(json.dumps(v, ensure_ascii=random.random() < 0.5))
    texts.append(json.dumps(v, separators=(",", ":"), ensure_ascii=random.random() < 0.5))
texts += [
    "", " ", "nul", "nulll", "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "{", "{}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
    "{a:1}", "{'a':1}", "{\"a\":1 \"b\":2}", "01", "-01", "1.", ".5", "-", "+1", "1e", "1e+", "0x10", "1E5", "1e5", "-0", "-0.0",
    "1e-7", "123456789012345678901234567890", "\"", "\"a", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\u00e9\"",
    "\"\\ud83d\\ude00\"", "\"\t\"", "NaN", "Infinity", "-Infinity", "-NaN", "nan", "true false", " [ 1 , 2 ] ", "\"a\" x", "1 1",
    "\ufeff1", "[[]]", "[{}]", "\"\\/\"", "\"\u2028\"",
]
with open("json_cases.txt", "w", encoding="utf-8") as file:
    for text in texts:
        assert "\n" not in text
        try:
            result = json.dumps(json.loads(text), ensure_ascii=False)
        except ValueError:
            result = "refused"
        file.write(f"{text}\n{result}\n")
