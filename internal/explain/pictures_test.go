package explain

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

// TestPictures compares the pictures of clusters of several sizes with files.
func TestPictures(t *testing.T) {
	for _, nodes := range []int{6, 40, 400, 4000} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			state := mixedCluster(nodes)
			got := draw(state, Style{Width: 80})
			for _, line := range strings.Split(got, "\n") {
				if n := utf8.RuneCountInString(line); n > 80 || strings.HasSuffix(line, " ") {
					t.Errorf("%d columns: %q", n, line)
				}
			}
			compareFile(t, filepath.Join("testdata", "pictures", fmt.Sprintf("%d-nodes.txt", nodes)), got)
			if again := draw(mixedCluster(nodes), Style{Width: 80}); again != got {
				t.Error("another picture of the same cluster differs")
			}
		})
	}
}

// TestNarrowPictures checks that pictures fit into terminals that are not 80 columns wide.
func TestNarrowPictures(t *testing.T) {
	for _, nodes := range []int{6, 400} {
		for _, width := range []int{48, 60, 70, 120} {
			for _, line := range strings.Split(draw(mixedCluster(nodes), Style{Width: width}), "\n") {
				if n := utf8.RuneCountInString(line); n > width {
					t.Errorf("%d nodes in %d columns: %d columns: %s", nodes, width, n, line)
				}
			}
		}
	}
}

// TestWidePictureNamesEveryNode checks that nothing is cut or summed up if Wide is set.
func TestWidePictureNamesEveryNode(t *testing.T) {
	state := mixedCluster(400)
	got := draw(state, Style{Width: 80, Wide: true})
	if strings.Contains(got, "shortened") || strings.Contains(got, "such as") {
		t.Error(got)
	}
	for _, n := range state.Nodes() {
		if len(n.Tasks) > 3 && !strings.Contains(got, n.Name) {
			t.Errorf("%s is missing", n.Name)
		}
	}
}

func compareFile(t *testing.T, file, got string) {
	t.Helper()
	if os.Getenv("UPDATE_SCRIPTS") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("UPDATE_SCRIPTS=1 rewrites the file (-want +got):\n%s", d)
	}
}

// mixedCluster returns a cluster with nodes of six kinds and many workloads. It is the same for
// the same number of nodes.
func mixedCluster(nodes int) *cluster.State {
	c := &mixed{random: 1, names: "-"}
	if nodes > 40 {
		c.names = "-worker-node-of-the-cluster-%s-in-eu-west.example.com"
	}
	for _, q := range []string{"batch", "research", "serving"} {
		c.parts = append(c.parts, enginetest.Queue(q))
	}
	for i := range nodes {
		c.node(i)
	}
	s := enginetest.State(c.parts...)
	for _, id := range c.evicted {
		t := s.Job(id).Tasks()[0]
		if err := s.Apply(cluster.Decided{Changes: []cluster.Change{cluster.Evict{Task: t.Ref(), Attempt: t.Attempt + 1}}}); err != nil {
			panic(err)
		}
	}
	return s
}

// mixed builds a cluster.
type mixed struct {
	random  uint32
	names   string
	parts   []enginetest.Part
	jobs    int
	evicted []string // IDs of jobs
}

// below returns a number from 0 to n-1, from a generator of pseudo-random numbers.
func (c *mixed) below(n int) int {
	c.random = c.random*1664525 + 1013904223
	return int(c.random>>16) % n
}

// name returns the name of a node, with a number that is not padded.
func (c *mixed) name(kind string, i int) string {
	if c.names == "-" {
		return fmt.Sprintf("%s-%d", kind, i)
	}
	return kind + fmt.Sprintf(c.names, fmt.Sprint(i))
}

func (c *mixed) node(i int) {
	switch {
	case i%10 == 1:
		c.slices(i)
	case i%10 == 4:
		c.shared(i)
	case i%10 == 7:
		c.parts = append(c.parts, enginetest.Node(c.name("cpu", i)).CPU(64, "256Gi"))
	case i%10 == 5:
		n := enginetest.Node(c.name("old", i)).CPU(64, "256Gi").GPUs(4, "", "16Gi").With(func(n *cluster.Node) { n.Unschedulable = i%20 == 5 })
		c.parts = append(c.parts, n)
		c.fill(c.name("old", i), 4)
	case i%10 == 2:
		n := enginetest.Node(c.name("l4", i)).CPU(96, "512Gi").GPUs(4, "NVIDIA-L4", "24Gi").With(func(n *cluster.Node) {
			n.Devices[i/10%4].Foreign = enginetest.Size("12Gi")
		})
		c.parts = append(c.parts, n)
		if i%3 > 0 {
			c.job("web").Share(1, 500).Queue("serving").On(c.name("l4", i))
		}
	default:
		name := c.name("h100", i)
		c.parts = append(c.parts, enginetest.Node(name).CPU(192, "2Ti").GPUs(8, "NVIDIA-H100-80GB-HBM3", "80Gi").With(func(n *cluster.Node) {
			n.Unschedulable = i%40 == 9
			n.Devices[7].Lost = i%50 == 3 // fill leaves it free
			if i%100 == 36 {
				n.Phase = "STARTING"
			}
		}))
		c.fill(name, 8-i%2)
	}
}

// slices adds a node with two GPUs in MIG slices of three profiles.
func (c *mixed) slices(i int) {
	name := c.name("mig", i)
	n := enginetest.Node(name).CPU(64, "512Gi")
	for gpu := range 2 {
		n.Slices(1, "NVIDIA-A100-80GB", "3g.40gb", "40Gi").Slices(1, "NVIDIA-A100-80GB", "2g.20gb", "20Gi").Slices(2, "NVIDIA-A100-80GB", "1g.10gb", "10Gi").With(func(n *cluster.Node) {
			for k := range 4 {
				n.Devices[gpu*4+k].OwnSpec().Parent = fmt.Sprintf("GPU-%s-%d", name, gpu)
			}
		})
	}
	c.parts = append(c.parts, n)
	for _, profile := range []string{"3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"} {
		if c.below(3) > 0 {
			c.job("notebook").Devices(1).Queue("research").Shape(func(s *cluster.Shape) { s.Need.Partition = profile }).On(name)
		}
	}
}

// shared adds a node with two GPUs that time-slicing divides into four replicas each.
func (c *mixed) shared(i int) {
	name := c.name("shared", i)
	c.parts = append(c.parts, enginetest.Node(name).CPU(64, "256Gi").With(func(n *cluster.Node) {
		n.Sharing = cluster.Sharing{Strategy: "time-slicing", Replicas: 4}
		for gpu := range 2 {
			n.Devices = append(n.Devices, cluster.Replicate(cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "NVIDIA-L4-SHARED", Type: "cuda", Memory: enginetest.Size("24Gi"), NUMA: -1}, UUID: fmt.Sprintf("GPU-%s-%d", name, gpu)}, n.Sharing)...)
		}
		for k := range n.Devices {
			n.Devices[k].Index = int32(k)
		}
	}))
	for range c.below(7) {
		c.job("chat").Devices(1).Queue("serving").On(name)
	}
}

// fill adds jobs to a node until some or all of its devices are held.
func (c *mixed) fill(name string, devices int) {
	for devices > 0 {
		n := min(devices, []int{1, 2, 4, 8}[c.below(4)])
		devices -= n
		if c.below(5) == 0 {
			continue
		}
		j := c.job("train").Devices(n).Queue([]string{"batch", "research"}[c.jobs%2]).On(name)
		switch c.below(12) {
		case 0:
			j.Isolate(cluster.Isolation{GPU: cluster.GPUDeviceExclusive})
		case 1:
			c.evicted = append(c.evicted, j.Build().ID)
		}
	}
}

// job adds a job with the next number.
func (c *mixed) job(kind string) *enginetest.JobBuilder {
	c.jobs++
	j := enginetest.Job(fmt.Sprintf("%s-%d", kind, c.jobs))
	c.parts = append(c.parts, j)
	return j
}
