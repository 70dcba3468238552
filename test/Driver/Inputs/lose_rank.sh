# lose_rank.sh SIGNAL CHECKPOINT COMMAND...: runs COMMAND (mpirun), sends the signal to
# one of its ranks once the checkpoint is there, and prints the exit code; what the
# command printed goes to standard output, too.
signal=$1 checkpoint=$2
shift 2
"$@" 2>&1 &
launcher=$!
for i in $(seq 600); do
  [ -e "$checkpoint" ] && break
  sleep 0.1
done
rank=$(pgrep -f -P $launcher ckopt | tail -n 1)
kill -"$signal" "$rank"
wait $launcher
echo "exit code $?"
kill -KILL "$rank" 2>/dev/null || true
