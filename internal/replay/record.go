package replay

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/fragmentation"
)

// Recording is what a recorded log of changes says: which facts were reported when, and for how long
// jobs and tasks ran. It also has what the log itself decided.
type Recording struct {
	Name string
	Run  *LogRun // what the decisions of the log led to
	// Cut is true if the last line of the log is incomplete, as after a crash. It is left out.
	Cut bool
	// Unknown is how many jobs have an unknown run time: they did not end before the log did, and
	// their specs do not tell. Such a job does not end.
	Unknown int

	first   *cluster.State     // with which the log begins; it is not changed
	courses map[string]*course // of the jobs that were there at the beginning, by ID
	events  []event
	start   int64 // of the first session, or of the snapshot
	end     int64 // of the last session
	demand  []cluster.Requested
}

// course is what the log says about one job, from its arrival until it was removed.
type course struct {
	id      string
	runTime int64 // how long its minimum ran until the job was removed while it ran; -1: not known
	tasks   map[taskKey]work
}

// work is what the log says about a task that ended before its job was removed.
type work struct {
	runTime int64
	ended   cluster.Status // Pending: it was removed
}

// event is something that happens in a replay whatever is decided.
type event struct {
	at     int64
	batch  int // facts that were reported before the same session have the same number
	kind   eventKind
	change cluster.Change
	course *course                  // of the job that the event is about
	task   taskKey                  // of taskLeft
	memory map[string]cluster.Bytes // of memoryRead: foreign memory by the UUID of the device
}

type eventKind uint8

const (
	clusterFact eventKind = iota // a fact about a node, a queue, a budget or a set
	nodeGone
	memoryRead
	jobFact    // a fact about a job or a task, which is in change
	taskPlaced // another program than the scheduler placed a task
	taskLeft   // a task that had never run was removed, or has ended
	jobLeft    // a job was removed while no task of it ran, and had tasks to place
	jobCleaned // a job was removed after its tasks had ended
)

// RecordOptions are the settings of Record.
type RecordOptions struct {
	WarmUp int64 // what is before this time is not measured, in nanoseconds since the beginning of the log
	Points int   // how many points of the course are kept for a plot
	// Demand is what tasks request; see Recording.Demand. It is needed for points.
	Demand []cluster.Requested
	// Snapshot decodes a first line that is a snapshot. It returns nil if the line is none.
	Snapshot func(line []byte) (*cluster.Snapshot, error)
}

// Demand returns what the tasks of the log request.
func (r *Recording) Demand() []cluster.Requested { return r.demand }

// recorder applies the changes of a log to a State, and notes what a replay needs.
type recorder struct {
	*Recording
	*watcher
	facts   []line // since the last session; their time is not known yet
	batch   int
	options RecordOptions
}

// line is a change of the log and its place.
type line struct {
	number int
	change cluster.Change
}

// Record reads a log of changes: one change on each line, in JSON. The first line may be a snapshot,
// with which the log begins. Otherwise it begins with an empty State. A fact has the time of the next
// session.
func Record(name string, log io.Reader, o RecordOptions) (*Recording, error) {
	r := &recorder{Recording: &Recording{Name: baseName(name), courses: map[string]*course{}}, options: o}
	in := bufio.NewReaderSize(log, 1<<16)
	for number := 1; ; number++ {
		text, err := readLine(in)
		if errors.Is(err, io.EOF) {
			r.Cut = len(text) > 0
			break
		}
		if err == nil {
			err = r.line(number, text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, number, err)
		}
	}
	if r.first == nil {
		return nil, fmt.Errorf("%s: the log has no complete line", name)
	}
	if r.watcher == nil {
		return nil, fmt.Errorf("%s: the log has no SessionOpened, so that the times of its changes are not known", name)
	}
	if at, err := r.flush(r.now); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, at, err)
	}
	for _, j := range r.state.Jobs() {
		if k := r.byID[j.ID]; j.RunFor == 0 && !k.allEnded() {
			r.Unknown++
		}
	}
	r.end, r.demand = r.now, r.state.View().Demand().Requests
	r.finish()
	r.Run = r.LogRun
	return r.Recording, nil
}

// maxLine is the most bytes that a line may have, which is that of a snapshot.
const maxLine = 1 << 30

// readLine returns the next line without its end. Without an end, it returns what there is and io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var out []byte
	for {
		part, err := in.ReadSlice('\n')
		out = append(out, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(out[:len(out)-1], []byte("\r")), nil
		case len(out) > maxLine:
			return nil, fmt.Errorf("the line has more than %d MiB", maxLine>>20)
		case !errors.Is(err, bufio.ErrBufferFull):
			return out, err
		}
	}
}

// line takes in one line of the log.
func (r *recorder) line(number int, text []byte) error {
	if r.first == nil {
		if isSnapshot, err := r.begin(text); isSnapshot || err != nil {
			return err
		}
	}
	c, err := cluster.Decode(text)
	if err != nil {
		return err
	}
	at := r.time()
	switch c := c.(type) {
	case cluster.SessionOpened:
		if r.watcher == nil {
			r.open(c.Now)
		}
		at = max(c.Now, r.now)
	case cluster.Decided:
		for _, d := range c.Changes {
			if _, evicts := d.(cluster.Evict); evicts && r.watcher != nil {
				r.Evicted++
			}
		}
	case cluster.Learn:
	default:
		r.facts = append(r.facts, line{number, c})
		return nil
	}
	if r.watcher == nil {
		return fmt.Errorf("%s: no session was opened before", c.Kind())
	}
	if at, err := r.flush(at); err != nil {
		return fmt.Errorf("the fact of line %d: %w", at, err)
	}
	r.batch++
	return r.apply(c)
}

// time returns the time of the last session.
func (r *recorder) time() int64 {
	if r.watcher == nil {
		return 0
	}
	return r.now
}

// begin makes the first State. It reports whether the line is a snapshot.
func (r *recorder) begin(text []byte) (isSnapshot bool, err error) {
	r.first = cluster.NewState()
	if r.options.Snapshot == nil {
		return false, nil
	}
	snapshot, err := r.options.Snapshot(text)
	if snapshot == nil || err != nil {
		return false, err
	}
	r.first, err = snapshot.State()
	return true, err
}

// open begins to measure at the first session.
func (r *recorder) open(now int64) {
	r.watcher = newWatcher(r.first.Clone(), 0)
	r.points.most = r.options.Points
	if r.options.Points > 0 {
		r.points.observe = fragmentationIn(r.options.Demand)
	}
	if r.now = r.first.Now(); r.now == 0 {
		r.now = now
	}
	r.start, r.warmUp = r.now, r.now+r.options.WarmUp
	r.opening = true
	r.note(r.follow())
	r.opening = false
	for id, k := range r.byID {
		r.courses[id] = k.course
	}
}

// flush applies the facts since the last session at the time. On error, it returns the line.
func (r *recorder) flush(at int64) (number int, err error) {
	r.advance(at)
	list := r.facts
	r.facts = r.facts[:0]
	for i := range list {
		if err := r.fact(list[i].change); err != nil {
			return list[i].number, err
		}
	}
	if len(list) > 0 {
		r.points.keep(r.watcher, false)
	}
	return 0, nil
}

// apply applies a change that a replay does not take.
func (r *recorder) apply(c cluster.Change) error {
	if err := r.state.Apply(c); err != nil {
		return fmt.Errorf("%s: %w", c.Kind(), err)
	}
	r.note(r.follow())
	return nil
}

// fact applies a fact, and adds what a replay takes of it to the events.
func (r *recorder) fact(c cluster.Change) error {
	kind, taken := clusterFact, true
	switch c := c.(type) {
	case cluster.NodeGone:
		kind, taken = nodeGone, r.state.Node(c.Name) != nil
	case cluster.NodeRead:
		kind = memoryRead
	case cluster.JobPut, cluster.TaskPut, cluster.JobSeen:
		kind = jobFact
	case cluster.TaskSeen:
		kind, taken = taskPlaced, c.Node != "" && !r.isOn(c)
	case cluster.JobGone, cluster.TaskGone, cluster.BindSent, cluster.BindFailed, cluster.EvictionRefused:
		taken = false // note finds what users have removed; the rest follows from decisions
	}
	if err := r.apply(c); err != nil {
		return err
	}
	if !taken {
		return nil
	}
	e := event{kind: kind, change: c}
	switch c := c.(type) {
	case cluster.NodeRead:
		n := r.state.Node(c.Name)
		if n == nil {
			return nil
		}
		e.memory = map[string]cluster.Bytes{}
		for i := range n.Devices {
			e.memory[n.Devices[i].UUID] = n.Devices[i].Foreign
		}
	case cluster.JobPut:
		e.course = r.courseOf(c.Job.ID)
	case cluster.TaskPut:
		e.course = r.courseOf(c.Job)
	case cluster.JobSeen:
		e.course = r.courseOf(c.Job)
	case cluster.TaskSeen:
		e.course = r.courseOf(c.Task.Job)
	}
	r.add(e)
	return nil
}

// isOn reports whether the task is on the node where it is seen, or whether it was assigned to it.
func (r *recorder) isOn(c cluster.TaskSeen) bool {
	t := r.state.Task(c.Task)
	return t != nil && t.Node != nil && t.Node.Name == c.Node && t.Status != cluster.Nominated
}

func (r *recorder) courseOf(id string) *course {
	if k := r.byID[id]; k != nil {
		return k.course
	}
	return nil
}

func (r *recorder) add(e event) {
	e.at, e.batch = r.now, r.batch
	r.events = append(r.events, e)
}

// note adds to the courses of jobs what became known about them.
func (r *recorder) note(changed []*watchedJob) {
	for _, k := range changed {
		if k.course == nil {
			k.course = &course{id: k.job.ID, runTime: -1, tasks: map[taskKey]work{}}
		}
		if k.removed {
			r.noteRemoved(k)
			continue
		}
		for _, key := range k.keys() {
			s := k.tasks[key]
			_, known := k.course.tasks[key]
			switch {
			case s.present && s.ended == cluster.Pending:
				delete(k.course.tasks, key) // it may be pending again
			case known:
			case s.ran:
				k.course.tasks[key] = work{s.done, s.ended}
			default:
				k.course.tasks[key] = work{-1, s.ended}
				r.add(event{kind: taskLeft, course: k.course, task: key, change: cluster.TaskGone{Task: s.ref, UID: key.uid, Ended: s.ended}})
			}
			if !s.present {
				delete(k.tasks, key)
			}
		}
	}
}

// noteRemoved notes how a job ended that was removed.
func (r *recorder) noteRemoved(k *watchedJob) {
	switch {
	case k.ran:
		k.course.runTime = k.done
	case !k.ended:
		if k.started {
			k.course.runTime = k.done
		}
		r.add(event{kind: jobLeft, course: k.course})
	default:
		r.add(event{kind: jobCleaned, course: k.course})
	}
}

// keys returns the keys of the tasks, sorted.
func (k *watchedJob) keys() []taskKey {
	out := make([]taskKey, 0, len(k.tasks))
	for key := range k.tasks {
		out = append(out, key)
	}
	slices.SortFunc(out, func(a, b taskKey) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid)) })
	return out
}

// fragmentationIn returns a function that notes in a point how much of the devices is free and of no
// use to tasks with these requests.
func fragmentationIn(requests []cluster.Requested) func(*Point, *cluster.State) {
	workload := fragmentation.Popular(fragmentation.Counts(requests))
	var room fragmentation.Node
	return func(p *Point, s *cluster.State) {
		var sum float64
		devices := 0
		for _, n := range s.Nodes() {
			room.Read(n)
			devices += len(n.Devices)
			sum += float64(workload.Of(&room)) / fragmentation.Unit
		}
		p.Fragmented = sum / (float64(cluster.Whole) * float64(max(1, devices)))
	}
}
