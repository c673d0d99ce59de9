// Package launch says how the server of a model is started: with which image and command, at
// which port it answers, and which path says that it is ready. docs/serving.md lists the commands.
package launch

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/model"
)

// Variables that every container of a server has. A command of a user may contain them as
// $(NAME).
const (
	VarModel    = "BERTH_MODEL"
	VarTensor   = "BERTH_TENSOR_PARALLEL"
	VarPipeline = "BERTH_PIPELINE_PARALLEL"
	VarData     = "BERTH_DATA_PARALLEL"
	VarContext  = "BERTH_CONTEXT"
	VarPort     = "BERTH_PORT"
	VarNodes    = "BERTH_NODES"
	VarNodeRank = "BERTH_NODE_RANK"
	VarLeader   = "BERTH_LEADER"
	VarPodIP    = "BERTH_POD_IP"
)

// Values of server.distribution: how a vllm server is divided over nodes.
const (
	Ray    = "Ray"
	Native = "Native"
)

// Replica is a replica to start.
type Replica struct {
	Object  *v1alpha1.Model
	Spec    *model.Spec
	Context int // the tokens of a sequence; 0: as many as the model supports
	Form    *model.Form
	// Device is the type of the devices, such as cuda; "" if the replica has none. Parts is set if
	// it holds parts of devices.
	Device string
	Parts  bool
	// Leader is the address of the first pod, and Rank the number of this one, as texts that the
	// container expands; both are used for replicas of several pods only. Workers are the
	// addresses of the other pods; nil if the replica is one pod.
	Leader, Rank string
	Workers      []string
	// Uneven is set if the pods have different numbers of devices.
	Uneven bool
}

// Server is how a server is started.
type Server struct {
	Image string
	// Command is the command of the first pod, or of the only one, and Worker that of the others;
	// nil: that of the image.
	Command, Worker []string
	Port            int32
	Health          string // the path that answers 200 when the server is ready; "" if there is none
	Variables       []Variable
	// EachServes is set if every pod of the replica answers requests, and not the first one alone.
	EachServes bool
}

// Variable is an environment variable. The container expands its value.
type Variable struct {
	Name, Value string
	// Field is the field of the pod that the value is taken from, such as status.podIP; "": Value is
	// the value.
	Field string
}

// Problem is why a server cannot be started as the model says.
type Problem struct {
	Path    field.Path
	Message string
}

func (p *Problem) Error() string { return p.Path.String() + ": " + p.Message }

func problem(message string, at ...any) error { return &Problem{at, message} }

// commands are the commands of a replica, which a program writes.
type commands struct {
	first, worker []string
	eachServes    bool
	workerArgs    bool // the arguments of the user are for the workers too
}

// program is how the server of one backend is started.
type program struct {
	port     int32
	health   string
	image    func(r *Replica, version string) (string, error)
	commands func(r *Replica, source string, port int32) (commands, error)
}

// programs are the backends that Berth can start by itself. Sources: the code of each project in
// its default version, and in older ones where a function depends on the version.
var programs = map[string]program{
	"vllm":     {port: 8000, health: "/health", image: vllmImage, commands: vllm},
	"sglang":   {port: 30000, health: "/health", image: sglangImage, commands: sglang},
	"llamacpp": {port: 8080, health: "/health", image: llamacppImage, commands: llamacpp},
}

// defaultVersions are the versions of models that name none.
var defaultVersions = map[string]string{"vllm": "0.27.1", "sglang": "0.5.18", "llamacpp": "b10586"}

// defaultPort is the port of a server that Berth does not know.
const defaultPort = 8000

// server returns how the model wants the server to be started.
func (r *Replica) server() v1alpha1.ModelServer {
	if s := r.Object.Spec.Server; s != nil {
		return *s
	}
	return v1alpha1.ModelServer{}
}

// pods returns the number of pods of the replica.
func (r *Replica) pods() int { return len(r.Workers) + 1 }

// Of returns how the server of the replica is started. An error is a *Problem.
func Of(r *Replica) (*Server, error) {
	s, name := r.server(), r.Spec.Backend.Name
	p, known := programs[name]
	out := &Server{Image: s.Image, Port: p.port, Health: p.health}
	if s.Port != 0 {
		out.Port = s.Port
	} else if out.Port == 0 {
		out.Port = defaultPort
	}
	switch {
	case out.Image == "" && !known:
		return nil, problem(fmt.Sprintf("Berth knows no image of the backend %s; name one", name), "spec", "server", "image")
	case len(s.Command) == 0 && !known && len(s.Args) > 0:
		return nil, problem(fmt.Sprintf("Berth does not know the command of the backend %s; write the arguments after it, under command", name), "spec", "server", "args")
	case out.Image == "":
		var err error
		if out.Image, err = p.image(r, r.version()); err != nil {
			return nil, err
		}
	}
	source, err := Source(r.Object)
	switch {
	case len(s.Command) > 0:
		out.Command = slices.Concat(s.Command, s.Args)
		out.Worker = out.Command
	case err != nil && known:
		return nil, err
	case known:
		c, err := p.commands(r, literal(source), out.Port)
		if err != nil {
			return nil, err
		}
		out.Command, out.Worker, out.EachServes = slices.Concat(c.first, s.Args), c.worker, c.eachServes
		if c.workerArgs {
			out.Worker = slices.Concat(c.worker, s.Args)
		}
	}
	if r.pods() == 1 {
		out.Worker = nil
	}
	out.Variables = r.variables(source, out.Port)
	return out, nil
}

// variables returns the variables for commands of users.
func (r *Replica) variables(source string, port int32) []Variable {
	text := func(name, value string) Variable { return Variable{Name: name, Value: value} }
	number := func(name string, n int) Variable { return text(name, strconv.Itoa(n)) }
	out := []Variable{
		text(VarModel, literal(source)), number(VarTensor, max(1, r.Form.Tensor)), number(VarPipeline, max(1, r.Form.Pipeline)), number(VarData, r.ranks()),
		number(VarContext, r.Context), number(VarPort, int(port)), number(VarNodes, r.pods()),
	}
	if r.pods() > 1 {
		out = append(out, text(VarLeader, r.Leader), text(VarNodeRank, r.Rank), Variable{Name: VarPodIP, Field: "status.podIP"})
	}
	return out
}

// ranks returns the number of data-parallel ranks.
func (r *Replica) ranks() int { return max(1, r.Spec.Serving.Data) }
