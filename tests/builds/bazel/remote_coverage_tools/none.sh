#!/bin/sh
echo "there are no coverage tools here" >&2
exit 1
