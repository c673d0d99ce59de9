package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/numeral"
)

// Weighed is how a plan to make room was found.
type Weighed struct {
	Purpose string       `json:"purpose"` // Reclaim, Preempt or Move
	Looks   int          `json:"looks"`   // nodes that were looked at closely in vain
	Tries   int          `json:"tries"`   // plans that were tried
	Options []Option     `json:"options,omitempty"`
	Rivals  int          `json:"rivals,omitempty"` // workloads that could have gone, those that did included
	Spared  []Protection `json:"spared,omitempty"`
	VictimCosts

	lines []string
}

// Option is a node on which room could have been made for a task.
type Option struct {
	Task   string   `json:"task"`
	Node   string   `json:"node"`
	Go     []string `json:"go"` // tasks that would have had to go: workload/task
	Chosen bool     `json:"chosen,omitempty"`
	VictimCosts
}

// VictimCosts are what plugins say of the victims of a plan.
type VictimCosts struct {
	VictimCost int64 `json:"victimCost,omitempty"` // what plugins say that the evicted tasks cost together
	MovedCost  int64 `json:"movedCost,omitempty"`  // the same of the tasks that move
}

// Protection is workloads that might have gone, had nobody spared them.
type Protection struct {
	Plugin    string   `json:"plugin"`
	Reason    string   `json:"reason"`
	Count     int      `json:"count"`
	Workloads []string `json:"workloads"` // ten at most
}

// Sparing is what kept an adapter from making room.
type Sparing struct {
	Purpose string `json:"purpose"` // Reclaim, Preempt or Move
	// Barred: nobody may go for this workload, whoever he is.
	Barred bool         `json:"barred,omitempty"`
	Spared []Protection `json:"spared,omitempty"`
}

func weighed(w *engine.Weighing) *Weighed {
	if w == nil {
		return nil
	}
	out := &Weighed{Purpose: w.Purpose.String(), Looks: w.Looks, Tries: w.Tries, Rivals: len(w.Rivals), Spared: protections(w.Spared), VictimCosts: VictimCosts{w.Cost.VictimCost, w.Cost.MovedCost}, lines: options(w)}
	out.Options = mapped(w.Options, func(o engine.Option) Option {
		return Option{o.Task, o.Node, o.Go, o.Chosen, VictimCosts{o.Cost.VictimCost, o.Cost.MovedCost}}
	})
	return out
}

func protections(list []engine.Protection) []Protection {
	return mapped(list, func(p engine.Protection) Protection {
		return Protection{p.Plugin, string(p.Reason), p.Count, p.Jobs}
	})
}

func sparings(list []engine.Sparing) []Sparing {
	var out []Sparing
	for _, s := range list {
		if !s.Barred && len(s.Protection) == 0 {
			continue
		}
		out = append(out, Sparing{s.Purpose.String(), s.Barred, protections(s.Protection)})
	}
	return out
}

// clause says why the workloads were protected.
func (ph Phrases) clause(s *cluster.State, p engine.Purpose, reason engine.Reason, jobs []string) string {
	doc := ph[reason]
	if doc.Spared == "" {
		return "(" + spell(string(reason)) + ")"
	}
	if doc.Span == nil {
		return doc.Spared
	}
	span := int64(0)
	for i, id := range jobs {
		least := int64(0)
		if j := s.Job(id); j != nil {
			least = doc.Span(s.View(), j, p)
		}
		if i > 0 && least != span {
			return strings.Replace(doc.Spared, "{time}", doc.Spans, 1)
		}
		span = least
	}
	return strings.Replace(doc.Spared, "{time}", spanText(span), 1)
}

// spanText spells a span without the zeros that Go writes.
func spanText(d int64) string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// sparedText counts who was spared: "8 workloads whose queue would fall below its fair
// share (job/a, job/b and 6 more), 4 that started less than 10m ago (…)".
func (ph Phrases) sparedText(s *cluster.State, p engine.Purpose, list []engine.Protection) string {
	var out []string
	for i, x := range list {
		names := slices.Clone(x.Jobs[:min(len(x.Jobs), 2)])
		who := strings.Join(names, " and ")
		if more := x.Count - len(names); more > 0 {
			who = strings.Join(names, ", ") + fmt.Sprintf(" and %d more", more)
		}
		many := strconv.Itoa(x.Count)
		if i == 0 {
			many = numeral.Count(x.Count, "workload")
		}
		out = append(out, fmt.Sprintf("%s %s (%s)", many, ph.clause(s, p, x.Reason, x.Jobs), who))
	}
	return strings.Join(out, ", ")
}
