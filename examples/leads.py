#!/usr/bin/env python3
"""Writes leads.csv: the same bytes each time. Standard library only.

The table has what tables from sales departments have: a byte order mark and CRLF, names from everywhere, quotes, commas
and line breaks inside cells, contacts that were entered twice, several contacts of one company, and gaps.
All domains are reserved (RFC 2606, RFC 6761): nothing here belongs to anyone.
"""
import csv
import os
import sys

COMPANIES, RECORDS = 206, 642
HERE = os.path.dirname(os.path.abspath(__file__))
TO = sys.argv[1] if len(sys.argv) > 1 else HERE  # the folder that is written to

FIRST = """Anna Björn Céline Dmitri Elif Ferenc Grażyna Hélène İlker João Kristín Łukasz Márton Noël Øyvind Petra Quirin
Renée Søren Tomáš Uwe Véronique Wiebke Ximena Yusuf Zoë Jürgen Käthe Jörg Maëlle Aoife Siân 美咲 Ngọc O'Neil""".split()
LAST = """Müller Weiß Østergaard Nowak Fernández Dubois Yılmaz Kovács Novák Lindqvist García Rossi Silva Jansen Þórsson
Schröder Großmann Núñez Łuczak D'Angelo Strauß O'Brien Çelik Sørensen Håkansson Błaszczyk 佐藤 Nguyễn Maier Ünal""".split()
ADJECTIVE = """nord sued blau gruen alt neu hoch berg see wald stern licht stahl holz silber gold adler falken linden
ulmen eichen birken rhein elbe donau""".split()
NOUN = "bau logistik energie werke technik medien handel labor druck soft moebel pharma".split()
TITLES = ["HEAD OF SALES", "managing director", "Geschäftsführerin", "buyer", "Chief Technology Officer", "",
          "office manager", "Einkäufer", "FOUNDER", "consultant", "", "Prokuristin"]
NOTES = ["", "", "", "", "", "met at the fair", 'said "call me after five", then left', "prefers e-mail, not phone",
         "two lines:\nsecond line", "🎉 won in May", "👩‍💻 developer; asks for the API", "Straße 5, 1. OG", "\"quoted\"",
         "interested; budget 10,000 €", "tab\there", "naïve façade – déjà vu", "NULL", "0", "last line is empty\n"]
FREEMAIL = ["freemail.example", "postbox.example"]
FOLD = {"ü": "ue", "ö": "oe", "ä": "ae", "ß": "ss", "ø": "o", "ł": "l", "ż": "z", "é": "e", "è": "e", "ë": "e", "ï": "i",
        "í": "i", "á": "a", "ã": "a", "å": "a", "ó": "o", "ç": "c", "ñ": "n", "ú": "u", "ı": "i", "š": "s", "â": "a",
        "ọ": "o", "ễ": "e", "þ": "th", "'": "", "̇": ""}


class Dice:
    """A linear congruential generator (the constants of Knuth's MMIX): the same on every Python."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def of(self, items):
        return items[self.below(len(items))]


def mailbox(first, last, i):
    name = "".join(FOLD.get(c, c) for c in (first + "." + last).lower())
    if not name.isascii():
        return f"contact{i}"
    return name if i % 3 else f"{name}{i}"


def main():
    dice = Dice(20240229)
    names = [f"{a}-{n}" for a in ADJECTIVE for n in NOUN]
    for i in range(len(names) - 1, 0, -1):
        j = dice.below(i + 1)
        names[i], names[j] = names[j], names[i]
    domains = [n + ".example" for n in names[:COMPANIES]]

    records, seen = [], set()
    while len(records) < RECORDS - 16:
        i = len(records)
        first, last = dice.of(FIRST), dice.of(LAST)
        # Every company has a contact, some have many.
        domain = domains[i] if i < COMPANIES else domains[dice.below(120)]
        organisation = domain.split(".")[0].replace("-", " ").title()
        if i % 13 == 7 and i >= COMPANIES:
            domain, organisation = dice.of(FREEMAIL), ""
        if i in (230, 300, 371, 444, 512):
            domain, organisation = ("gone", "closed")[i % 2] + ".invalid", "closed down?"
        email = f"{mailbox(first, last, i)}@{domain}"
        if i % 41 == 11:
            email = email.split("@")[0] + "@" + domain.upper()
        if i in (222, 333, 388, 555):
            email = email.replace("@", "(at)")
        if i in (250, 450):
            email = f"jörg.maß{i}@{domain}"
        if email in seen:
            continue
        seen.add(email)
        if i % 29 == 3:
            first = ""
        if i % 37 == 5:
            last = ""
        if i % 17 == 2:
            first = f" {first} "
        if i % 23 == 9:
            organisation = f'{organisation}, "{dice.of(LAST)} & Söhne"'
        records.append([email, first, last, dice.of(TITLES), organisation, dice.of(NOTES)])

    # Companies first would make a table in which no call is ever shared early: mix, then enter some contacts twice.
    for i in range(len(records) - 1, 0, -1):
        j = dice.below(i + 1)
        records[i], records[j] = records[j], records[i]
    for k in range(16):
        again = list(records[dice.below(len(records) // 2)])
        again[5] = "entered twice" if k % 2 else again[5]
        records.insert(len(records) // 2 + dice.below(len(records) // 2), again)

    with open(os.path.join(TO, "leads.csv"), "w", encoding="utf-8-sig", newline="") as f:
        out = csv.writer(f, lineterminator="\r\n")
        out.writerow(["email", "first_name", "last_name", "title", "organisation", "notes"])
        out.writerows(records)
    print(f"{len(records)} records, {len(seen)} different", file=sys.stderr)


if __name__ == "__main__":
    main()
