// Command soak runs random sequences of steps on small clusters, and prints
// each failed check with the command that replays it.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-project/berth/internal/verify/soak"
)

func main() {
	steps := flag.Int("steps", 1_000_000, "number of steps of all sequences together")
	length := flag.Int("life", 200, "number of steps of one sequence")
	seed := flag.Uint64("seed", uint64(time.Now().Unix())*1_000_000, "seed of the first sequence; each further sequence has the next number")
	workers := flag.Int("workers", 2, "number of sequences that run at the same time")
	replay := flag.Uint64("replay", 0, "run only the sequence with this seed")
	only := flag.String("only", "", "with -replay: run only these steps, such as 3,17,18")
	flag.Parse()
	if *steps < 1 || *length < 1 || *workers < 1 || flag.NArg() > 0 || *only != "" && *replay == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *replay != 0 {
		os.Exit(replaySequence(soak.Sequence{Seed: *replay, Steps: *length}, *only))
	}
	r := &run{next: max(1, *seed), left: (*steps + *length - 1) / *length, length: *length, begun: time.Now()}
	fmt.Printf("%d sequences of %d steps, from seed %d\n", r.left, *length, r.next)
	var wg sync.WaitGroup
	for range *workers {
		wg.Go(r.work)
	}
	wg.Wait()
	fmt.Printf("%s\n%d sequences failed\n", r.total, r.failed)
	if r.failed > 0 {
		os.Exit(1)
	}
}

// replaySequence runs a sequence and prints its counts or its failure.
func replaySequence(s soak.Sequence, only string) int {
	for field := range strings.SplitSeq(only, ",") {
		if step, err := strconv.Atoi(field); err == nil {
			s.Only = append(s.Only, step)
		} else if only != "" {
			fmt.Fprintf(os.Stderr, "-only: %q is not a step; want numbers such as 3,17,18\n", field)
			return 2
		}
	}
	counts, failure := s.Run()
	if failure != nil {
		fmt.Println(failure)
		return 1
	}
	fmt.Println(counts)
	return 0
}

// maxFailures is the number of failed sequences after which a run ends.
const maxFailures = 10

// patience is the time after which a message says that a sequence may hang. Most
// sequences take a fraction of a second.
const patience = 2 * time.Minute

// run distributes sequences to the workers and adds up their counts.
type run struct {
	mu                             sync.Mutex
	next                           uint64 // the seed of the next sequence
	left, length, finished, failed int
	total                          soak.Counts
	begun                          time.Time
}

func (r *run) work() {
	for {
		r.mu.Lock()
		if r.left == 0 || r.failed >= maxFailures {
			r.mu.Unlock()
			return
		}
		sequence := soak.Sequence{Seed: r.next, Steps: r.length}
		r.next++
		r.left--
		r.mu.Unlock()
		stuck := time.AfterFunc(patience, func() {
			fmt.Printf("a sequence has taken more than %s and may hang\nreplay: %s\n", patience, (&soak.Failure{Sequence: sequence}).Replay())
		})
		counts, failure := sequence.Run()
		stuck.Stop()
		if failure != nil {
			failure = failure.Shrink()
		}
		r.done(counts, failure)
	}
}

func (r *run) done(counts soak.Counts, failure *soak.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total.Add(counts)
	if r.finished++; r.finished%250 == 0 {
		fmt.Printf("%s: %s\n", time.Since(r.begun).Round(time.Second), r.total)
	}
	if failure != nil {
		r.failed++
		fmt.Printf("%v\nreplay: %s\n", failure, failure.Replay())
	}
}
