#!/usr/bin/env python3
"""Merges what `run.sh` measured into one report.

    merge.py --out FILE
"""
import datetime
import json
import pathlib
import sys


def read(name):
    path = pathlib.Path(name)
    return json.loads(path.read_text()) if path.exists() else {}


def main():
    assert sys.argv[1] == "--out", __doc__
    report = read("cases.json")
    report["date"] = datetime.date.today().isoformat()
    commit = pathlib.Path("commit")
    report["commit"] = commit.read_text().strip() if commit.exists() else "unknown"
    sanitizers = pathlib.Path("sanitizers.txt")
    lines = sanitizers.read_text().splitlines() if sanitizers.exists() else []
    kept = ("==", "=========", "passed")
    report["sanitizers"] = [line for line in lines if line.startswith("==") or kept[2] in line][-40:]
    report["peers"] = read("peers.json")
    with open(sys.argv[2], "w") as out:
        json.dump(report, out, indent=1)
        out.write("\n")
    print(f"{sys.argv[2]}: {report.get('passed')} passed, {len(report.get('failed', []))} failed")


if __name__ == "__main__":
    main()
