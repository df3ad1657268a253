#!/usr/bin/env python3
"""Works out expected.csv from leads.csv without Sluice. Standard library only.

It restates in another language what the simulated providers know (internal/providersim/answers.go) and what
leads.map.yaml means, so that both can be checked against it. It never asks a provider: troubles on the way must not
change the table. Of an error only the column and the code are given (`firm: HTTP_422`): the rest is for people.
"""
import csv
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TO = sys.argv[1] if len(sys.argv) > 1 else HERE  # the folder that is written to
COLUMNS = "email name role company industry city employees size phone deliverable notes _status _error".split()
SUFFIXES = ["GmbH", "AG", "Ltd", "Inc", "SA"]
INDUSTRIES = ["Software", "Logistics", "Construction", "Food", "Energy", "Health", "Media", "Retail"]
CITIES = ["Berlin", "Köln", "Zürich", "Łódź", "Málaga", "Oslo", "Paris"]


class Refused(Exception):
    """A provider's 422."""


# What the providers know.

def fnv1a(*parts):
    h = 0x811C9DC5
    for byte in "|".join(parts).encode():
        h = (h ^ byte) * 0x01000193 % 2**32
    return h


def check(domain):
    if domain == "" or domain.endswith(".invalid"):
        raise Refused


def acme_company(domain):
    check(domain)
    h = fnv1a("company", domain)
    if h % 100 < 12:
        return None
    words = domain.split(".")[0].split("-")
    return {
        "name": " ".join(w[:1].upper() + w[1:] for w in words) + " " + SUFFIXES[h // 100 % 5],
        "industry": INDUSTRIES[h // 500 % 8],
        "city": CITIES[h // 4000 % 7],
        "employees": 3 + h // 28000 % 4000,
    }


def number(h):
    return f"+49 30 {h // 100 % 10_000_000:07d}"


def alpha_phone(domain):
    check(domain)
    h = fnv1a("phone", "alpha", domain)
    return None if h % 100 < 25 else (number(h), 50 + h // 100 % 50)


def beta_phone(domain):
    check(domain)
    h = fnv1a("search", "beta", domain)
    return None if h % 100 < 20 else number(h)


def mail_verify(email):
    h = fnv1a("verify", email)
    if h % 100 < 3:
        raise Refused
    return h // 100 % 100 >= 15


# What the map means.

def ascii_case(text, method):
    return "".join(getattr(c, method)() if c.isascii() else c for c in text)


def phone(domain):
    try:
        found = alpha_phone(domain)
        if found and found[1] >= 80:
            return found[0]
    except Refused:
        pass
    try:
        return beta_phone(domain)
    except Refused:
        return None


def deliverable(email):
    try:
        return "true" if mail_verify(email) else "false"
    except Refused:
        return "unknown"


def enrich(row):
    email, title = row["email"], row["title"]
    out = dict.fromkeys(COLUMNS, "")
    out |= {"email": email, "notes": row["notes"], "_status": "completed"}
    domain = ascii_case(email.split("@")[1], "lower") if "@" in email else ""
    corporate = domain not in ("", "freemail.example", "postbox.example")
    firm = None
    if corporate:
        try:
            firm = acme_company(domain)
        except Refused:
            # The row has failed: it keeps what the input said, and has no cells.
            return out | {"_status": "failed", "_error": "firm: HTTP_422"}
    out["name"] = (row["first_name"] + " " + row["last_name"]).strip()
    out["role"] = ascii_case(title[:1], "upper") + ascii_case(title[1:], "lower")
    if firm:
        out |= {"company": firm["name"]} | {k: firm[k] for k in ("industry", "city", "employees")}
        out["size"] = ("enterprise" if firm["employees"] >= 1000 else
                       "mid-market" if firm["employees"] >= 100 else "small")
    if corporate:
        out["phone"] = phone(domain) or ""
    if domain:
        out["deliverable"] = deliverable(email)
    return out


def main():
    rows = {}
    with open(os.path.join(HERE, "leads.csv"), encoding="utf-8-sig", newline="") as f:
        for row in csv.DictReader(f):
            rows.setdefault(row["email"], row)  # the first one wins
    table = [enrich(row) for row in rows.values()]
    with open(os.path.join(TO, "expected.csv"), "w", encoding="utf-8", newline="") as f:
        out = csv.DictWriter(f, COLUMNS, lineterminator="\n")
        out.writeheader()
        out.writerows(table)
    failed = sum(r["_status"] == "failed" for r in table)
    print(f"{len(table)} rows, {failed} failed", file=sys.stderr)


if __name__ == "__main__":
    main()
