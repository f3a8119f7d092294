#!/bin/bash
# A shell with a background job, traps, a here-document, a pipeline and arithmetic; see check.h for the rules.
progress=$1
report() { echo "$1" >>"$progress"; }
fail() { report "FAIL $1"; exit 99; }

usr1=0
# Neither here nor below $(...): bash 5.2 cannot parse one while a trap interrupts the parsing of another.
trap 'let usr1+=1' USR1
trap 'report "ended by exit"' EXIT
trap '' PIPE

(
    n=0
    trap 'exit 33' TERM
    while :; do
        let n+=1
        echo "$n" >"$progress.job"
        kill -USR1 $$ || exit
        sleep 0.3
    done
) &
job=$!
coproc CAT { cat; }
declare -A table=([one]=1 [two]=2)
array=(a "b c" d)
n=0
while [ ! -e "$progress.stop" ]; do
    let n+=1
    echo "$n" | tr 0-9 a-j | tr a-j 0-9 >"$progress.pipeline"
    read -r back <"$progress.pipeline"
    [ "$back" = "$n" ] || fail "the pipeline gave $back, not $n"
    echo "line $n" >&"${CAT[1]}"
    read -r answer <&"${CAT[0]}"
    [ "$answer" = "line $n" ] || fail "the coprocess answered <$answer>"
    read -r word <<END
$n-here
END
    [ "$word" = "$n-here" ] || fail "the here-document gave <$word>"
    [ "${table[two]}${array[1]}" = "2b c" ] || fail "a variable changed"
    jobs -r -p >"$progress.jobs"
    read -r running <"$progress.jobs"
    [ "$running" = "$job" ] || fail "the job is gone"
    report "tick $n"
done
[ -e "$progress.stop" ] || fail "the loop ended, but nobody had asked for it"
before=$usr1
for ((i = 0; usr1 == before; i++)); do
    [ "$i" -lt 1000 ] || fail "no signal comes"
    sleep 0.01
done
kill -TERM "$job"
wait "$job"
while kill -0 "$job" 2>/dev/null; do wait "$job"; done
wait "$job"
status=$?
[ "$status" -eq 33 ] || fail "the job ended with $status"
exec {CAT[1]}>&-
trap - EXIT
report "done"
exit 42
