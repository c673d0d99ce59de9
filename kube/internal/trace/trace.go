// Package trace describes sessions as OpenTelemetry spans:
//
//	session                   one session, from its first to its last hook
//	├── hook PLUGIN/HOOK      the calls of a hook outside of turns, such as OnSessionOpen
//	└── ID OF A JOB           one turn of the job
//	    └── hook PLUGIN/HOOK  the calls of a hook in the turn
//
// A hook may be called for thousands of nodes in one turn. Its span therefore stands for all of
// these calls: it starts with the turn and is as long as the calls together.
package trace

import (
	"context"
	"time"

	"github.com/berth-project/berth/engine"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Session is a session that has begun.
type Session struct {
	tracer  trace.Tracer
	ctx     context.Context
	span    trace.Span
	began   time.Time
	timings *engine.Timings // nil if the session is not sampled
}

// Begin begins the span of a session. A Tracer that is nil makes no spans.
func (t *Tracer) Begin(now time.Time) *Session {
	if t == nil {
		return &Session{}
	}
	ctx, span := t.tracer.Start(context.Background(), "session", trace.WithTimestamp(now))
	if !span.IsRecording() {
		return &Session{}
	}
	clock := func() int64 { return int64(time.Since(now)) }
	return &Session{tracer: t.tracer, ctx: ctx, span: span, began: now, timings: &engine.Timings{Clock: clock, PerTurn: true}}
}

// Timings returns what measures the hooks of the session; nil if its span is not sampled.
func (s *Session) Timings() *engine.Timings { return s.timings }

// maxJobs is how many turns of one session have spans. The span of the session counts them all.
const maxJobs = 1000

// End ends the span of the session, and makes those of its jobs and hooks.
func (s *Session) End(out *engine.Outcome, err error) {
	if s.timings == nil {
		return
	}
	ended := time.Since(s.began)
	inTurns := map[[2]string]engine.Timing{}
	for i, turn := range s.timings.Turns() {
		for _, h := range turn.Hooks {
			sum := inTurns[[2]string{h.Plugin, h.Hook}]
			sum.Calls, sum.Nanoseconds = sum.Calls+h.Calls, sum.Nanoseconds+h.Nanoseconds
			inTurns[[2]string{h.Plugin, h.Hook}] = sum
		}
		if i < maxJobs {
			s.job(&turn)
		}
	}
	for _, h := range s.timings.List() {
		sum := inTurns[[2]string{h.Plugin, h.Hook}]
		if h.Calls, h.Nanoseconds = h.Calls-sum.Calls, h.Nanoseconds-sum.Nanoseconds; h.Calls > 0 {
			s.hook(s.ctx, &h, 0)
		}
	}
	s.span.SetAttributes(
		attribute.Int("berth.turns", len(s.timings.Turns())),
		attribute.Int("berth.decisions", len(out.Decisions)),
		attribute.Int("berth.refusals", len(out.Refusals)))
	if err != nil {
		s.span.SetStatus(codes.Error, err.Error())
	}
	s.span.End(trace.WithTimestamp(s.began.Add(ended)))
}

// job makes the span of a turn.
func (s *Session) job(turn *engine.TurnTiming) {
	ctx, span := s.tracer.Start(s.ctx, turn.Job, trace.WithTimestamp(s.at(turn.Start)), trace.WithAttributes(
		attribute.String("berth.job", turn.Job),
		attribute.Int("berth.decisions", turn.Decisions),
		attribute.Bool("berth.refused", turn.Decisions == 0)))
	for i := range turn.Hooks {
		s.hook(ctx, &turn.Hooks[i], turn.Start)
	}
	span.End(trace.WithTimestamp(s.at(turn.End)))
}

// hook makes the span of the calls of a hook.
func (s *Session) hook(parent context.Context, h *engine.Timing, start int64) {
	_, span := s.tracer.Start(parent, "hook "+h.Plugin+"/"+h.Hook, trace.WithTimestamp(s.at(start)), trace.WithAttributes(
		attribute.String("berth.plugin", h.Plugin),
		attribute.String("berth.hook", h.Hook),
		attribute.Int64("berth.calls", h.Calls)))
	span.End(trace.WithTimestamp(s.at(start + max(0, h.Nanoseconds))))
}

// at returns the time of a reading of the clock of the timings.
func (s *Session) at(reading int64) time.Time { return s.began.Add(time.Duration(reading)) }
