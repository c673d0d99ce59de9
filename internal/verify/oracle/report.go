package oracle

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Report sums up the verdicts about many cases of one kind. Jobs for which only the last
// resort allows a plan are counted in Last, and not in Relevant, Placed and Minimal.
type Report struct {
	Kind                              Kind
	Drawn, Judged, TooLarge           int // cases, pending jobs, and pending jobs that were too large to try everything
	Relevant, Placed, Minimal         int
	Last                              struct{ Relevant, Placed, Minimal int } // jobs for which only the last resort allows a plan
	Unchecked                         int                                     // plans of the last resort for which it is not known whether there is another plan
	NotPlaced, NotMinimal, Violations []Verdict                               // NotMinimal: placed, but not by the cheapest plan; Violations: by a plan that breaks rules
	LastFailed                        []Verdict                               // of the last resort: not placed, or not by the cheapest plan
}

// Survey draws cases of the kind, from number 0 on, until the given number of pending jobs is
// relevant or most cases are drawn. The report is the same on every machine.
func Survey(k Kind, relevant, most int) (*Report, error) {
	const chunk = 500
	r := &Report{Kind: k}
	workers := runtime.GOMAXPROCS(0)
	for first := 0; first < most && r.Relevant < relevant; {
		chunks := make([][]Verdict, workers)
		errs := make([]error, workers)
		var group sync.WaitGroup
		for w := range workers {
			group.Go(func() { chunks[w], errs[w] = judgeAll(k, first+w*chunk, chunk) })
		}
		group.Wait()
		for w := range workers {
			if errs[w] != nil {
				return nil, errs[w]
			}
			if r.Relevant < relevant {
				r.add(chunks[w])
				r.Drawn += chunk
			}
		}
		first += workers * chunk
	}
	return r, nil
}

// judgeAll judges count cases of the kind, from number first on.
func judgeAll(k Kind, first, count int) ([]Verdict, error) {
	var out []Verdict
	for i := range count {
		c, err := Draw(k, first+i)
		if err != nil {
			return nil, err
		}
		e, err := Engine(k)
		if err != nil {
			return nil, err
		}
		verdicts, err := c.Judge(e)
		if err != nil {
			return nil, err
		}
		out = append(out, verdicts...)
	}
	return out, nil
}

func (r *Report) add(verdicts []Verdict) {
	for _, v := range verdicts {
		r.Judged++
		if len(v.Illegal) > 0 {
			r.Violations = append(r.Violations, v)
		}
		r.Unchecked += v.Unchecked
		switch {
		case v.TooLarge:
			r.TooLarge++
			continue
		case !v.Relevant:
			continue
		case v.LastResort:
			r.addLast(v)
			continue
		}
		r.Relevant++
		switch {
		case v.Minimal:
			r.Placed++
			r.Minimal++
		case v.Placed:
			r.Placed++
			r.NotMinimal = append(r.NotMinimal, v)
		default:
			r.NotPlaced = append(r.NotPlaced, v)
		}
	}
}

func (r *Report) addLast(v Verdict) {
	if r.Last.Relevant++; v.Placed {
		r.Last.Placed++
	}
	if v.Placed && v.Minimal {
		r.Last.Minimal++
		return
	}
	v.Why = "last resort: " + v.Why
	r.LastFailed = append(r.LastFailed, v)
}

// PlacedRate returns the percentage of relevant jobs that were placed.
func (r *Report) PlacedRate() float64 { return rate(r.Placed, r.Relevant) }

// MinimalRate returns the percentage of placed jobs that were placed by the cheapest plan.
func (r *Report) MinimalRate() float64 { return rate(r.Minimal, r.Placed) }

func rate(some, all int) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(some) / float64(all)
}

// Table returns the reports as a table in Markdown.
func Table(reports []*Report) string {
	var b strings.Builder
	b.WriteString("| kind | cases drawn | pending jobs | too large | relevant | placed | % | minimal % | last resort | % | minimal % | illegal |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range reports {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %.2f | %.2f | %d | %.2f | %.2f | %d |\n", r.Kind, r.Drawn, r.Judged, r.TooLarge, r.Relevant, r.Placed, r.PlacedRate(), r.MinimalRate(), r.Last.Relevant, rate(r.Last.Placed, r.Last.Relevant), rate(r.Last.Minimal, r.Last.Placed), len(r.Violations))
	}
	return b.String()
}

// Groups lists the verdicts by their cause, the most frequent first, each with the given
// number of examples.
func Groups(verdicts []Verdict, examples int) string {
	byWhy := map[string][]Verdict{}
	for _, v := range verdicts {
		why := v.Why
		if len(v.Illegal) > 0 {
			why = v.Illegal[0].Rule
		}
		byWhy[why] = append(byWhy[why], v)
	}
	var whys []string
	for why := range byWhy {
		whys = append(whys, why)
	}
	slices.SortFunc(whys, func(a, c string) int {
		return cmp.Or(cmp.Compare(len(byWhy[c]), len(byWhy[a])), strings.Compare(a, c))
	})
	var b strings.Builder
	for _, why := range whys {
		list := byWhy[why]
		fmt.Fprintf(&b, "- %s: %d", why, len(list))
		for i, v := range list[:min(examples, len(list))] {
			fmt.Fprintf(&b, "%s%d", map[bool]string{true: ", cases ", false: " "}[i == 0], v.Number)
		}
		b.WriteString("\n")
	}
	return b.String()
}
