// Command soak runs random sequences of events (lives) on small clusters, and prints
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
	steps := flag.Int("steps", 1_000_000, "number of steps of all lives together")
	length := flag.Int("life", 200, "number of steps of one life")
	seed := flag.Uint64("seed", uint64(time.Now().Unix())*1_000_000, "seed of the first life; each further life has the next number")
	workers := flag.Int("workers", 2, "number of lives that run at the same time")
	replay := flag.Uint64("replay", 0, "run only the life with this seed")
	only := flag.String("only", "", "with -replay: run only these steps, such as 3,17,18")
	flag.Parse()
	if *steps < 1 || *length < 1 || *workers < 1 || flag.NArg() > 0 || *only != "" && *replay == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *replay != 0 {
		os.Exit(replayLife(soak.Life{Seed: *replay, Steps: *length}, *only))
	}
	r := &run{next: max(1, *seed), left: (*steps + *length - 1) / *length, length: *length, begun: time.Now()}
	fmt.Printf("%d lives of %d steps, from seed %d\n", r.left, *length, r.next)
	var wg sync.WaitGroup
	for range *workers {
		wg.Go(r.work)
	}
	wg.Wait()
	fmt.Printf("%s\n%d lives failed\n", r.total, r.failed)
	if r.failed > 0 {
		os.Exit(1)
	}
}

// replayLife runs a life and prints its counts or its failure.
func replayLife(l soak.Life, only string) int {
	for field := range strings.SplitSeq(only, ",") {
		if step, err := strconv.Atoi(field); err == nil {
			l.Only = append(l.Only, step)
		} else if only != "" {
			fmt.Fprintf(os.Stderr, "-only: %q is not a step; want numbers such as 3,17,18\n", field)
			return 2
		}
	}
	counts, failure := l.Run()
	if failure != nil {
		fmt.Println(failure)
		return 1
	}
	fmt.Println(counts)
	return 0
}

// maxFailures is the number of failed lives after which a run ends.
const maxFailures = 10

// patience is the time after which a message says that a life may hang. Most lives
// take a fraction of a second.
const patience = 2 * time.Minute

// run distributes lives to the workers and adds up their counts.
type run struct {
	sync.Mutex
	next                        uint64
	left, length, lived, failed int
	total                       soak.Counts
	begun                       time.Time
}

func (r *run) work() {
	for {
		r.Lock()
		if r.left == 0 || r.failed >= maxFailures {
			r.Unlock()
			return
		}
		life := soak.Life{Seed: r.next, Steps: r.length}
		r.next++
		r.left--
		r.Unlock()
		stuck := time.AfterFunc(patience, func() {
			fmt.Printf("a life has taken more than %s and may hang\nreplay: %s\n", patience, (&soak.Failure{Life: life}).Replay())
		})
		counts, failure := life.Run()
		stuck.Stop()
		if failure != nil {
			failure = failure.Shrink()
		}
		r.done(counts, failure)
	}
}

func (r *run) done(counts soak.Counts, failure *soak.Failure) {
	r.Lock()
	defer r.Unlock()
	r.total.Add(counts)
	if r.lived++; r.lived%250 == 0 {
		fmt.Printf("%s: %s\n", time.Since(r.begun).Round(time.Second), r.total)
	}
	if failure != nil {
		r.failed++
		fmt.Printf("%v\nreplay: %s\n", failure, failure.Replay())
	}
}
