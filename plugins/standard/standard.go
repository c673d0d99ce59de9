// Package standard lists the plugins that are included in Berth, and the default profile:
// their order and weights. An engine with all of them is made like this:
//
//	e, err := engine.New(standard.Registry(), standard.Profile())
//
// A program with plugins of its own adds them to the registry and to the profile:
//
//	r := standard.Registry()
//	err := r.RegisterPluginBuilder(mine.Name, mine.New)
//	profile, err := standard.Merge(standard.Profile(), []standard.Override{{
//		Name: mine.Name, Place: standard.Place{Side: standard.Before, Plugin: noderesourcesfit.Name},
//	}}, false)
//	e, err := engine.New(r, profile)
package standard

import (
	"slices"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/affinityrequiredfilter"
	"github.com/berth-project/berth/plugins/affinityscorer"
	"github.com/berth-project/berth/plugins/backendframeworkfilter"
	"github.com/berth-project/berth/plugins/backfill"
	"github.com/berth-project/berth/plugins/bestfit"
	"github.com/berth-project/berth/plugins/capacityfilter"
	"github.com/berth-project/berth/plugins/clusterfilter"
	"github.com/berth-project/berth/plugins/consolidate"
	"github.com/berth-project/berth/plugins/devicefitscorer"
	"github.com/berth-project/berth/plugins/deviceorder"
	"github.com/berth-project/berth/plugins/disruptionbudget"
	"github.com/berth-project/berth/plugins/domainscorer"
	"github.com/berth-project/berth/plugins/doublebooking"
	"github.com/berth-project/berth/plugins/fairshare"
	"github.com/berth-project/berth/plugins/fgd"
	"github.com/berth-project/berth/plugins/fillvalue"
	"github.com/berth-project/berth/plugins/firstcome"
	"github.com/berth-project/berth/plugins/gpumatchingfilter"
	"github.com/berth-project/berth/plugins/gpupacking"
	"github.com/berth-project/berth/plugins/isolationfilter"
	"github.com/berth-project/berth/plugins/labelfilter"
	"github.com/berth-project/berth/plugins/labelmatchingfilter"
	"github.com/berth-project/berth/plugins/localpathfilter"
	"github.com/berth-project/berth/plugins/minruntime"
	"github.com/berth-project/berth/plugins/modelfilelocalityscorer"
	"github.com/berth-project/berth/plugins/nodegroupsizefilter"
	"github.com/berth-project/berth/plugins/noderesourcefilter"
	"github.com/berth-project/berth/plugins/noderesourcesfit"
	"github.com/berth-project/berth/plugins/noderesourcesfitplus"
	"github.com/berth-project/berth/plugins/offloadlayerscorer"
	"github.com/berth-project/berth/plugins/placementscorer"
	"github.com/berth-project/berth/plugins/preempt"
	"github.com/berth-project/berth/plugins/priority"
	"github.com/berth-project/berth/plugins/randomfit"
	"github.com/berth-project/berth/plugins/reclaim"
	"github.com/berth-project/berth/plugins/resourceutilizationscorer"
	"github.com/berth-project/berth/plugins/scarceresourceavoidance"
	"github.com/berth-project/berth/plugins/spotinstancemanager"
	"github.com/berth-project/berth/plugins/stalegang"
	"github.com/berth-project/berth/plugins/statusfilter"
	"github.com/berth-project/berth/plugins/statusscorer"
	"github.com/berth-project/berth/plugins/tainttoleration"
	"github.com/berth-project/berth/plugins/taskorder"
	"github.com/berth-project/berth/plugins/tenantadmission"
	"github.com/berth-project/berth/plugins/wiringscorer"
)

type entry struct {
	name   string
	build  engine.PluginBuilder
	weight int64 // 0 for a plugin without scores
}

// plugins lists all plugins in the order of the default profile. Comparisons and filters
// are called in this order. Filters that look at one field are before filters that
// count. The filter that checks for room is last, so that a refusal counts a node as full
// only if no other filter rejects it.
//
// The weights and their purpose follow. A score is between 0 and 100 before weighting, so a
// plugin of weight 10 outweighs plugins with weights that add up to less than 10.
//
//	10  spot-instance-manager      whether a machine may be withdrawn matters more than how well it is packed
//	 3  TaintToleration            what the operator prefers for a node
//	 2  AffinityScorer             what the user prefers for a task
//	 2  ScarceResourceAvoidance    keeping tasks without devices off machines with devices counts twice as much as packing
//	 1  FillValue                  what a placement takes of the room that arriving tasks can use
//	 1  PlacementScorer            the same for models; the preferences of operators and users still outweigh it
//	 1  ModelFileLocalityScorer    its maximum is 5, so existing files decide between layouts that are nearly equal
//	 1  DeviceFitScorer            its maximum is 10: a device no larger than needed is worth more than existing files, and less than the layout
//	 1  WiringScorer               its maximum is 6: among nodes that are packed nearly as well, one where devices are connected better
//	 1  DomainScorer               its maximum is 4: among nodes that are packed nearly as well, one whose domain is broken already
//	 1  ResourceUtilizationScorer  among node groups, where no other plugin scores
//
// Which replicas of a model are kept is decided by a separate sum:
//
//	100  StatusScorer              whether a replica is healthy counts first
//	 10  OffloadLayerScorer        then how much of it is on devices
//	  1  PlacementScorer           then where it is
var plugins = []entry{
	// The order of queues, jobs and tasks.
	{fairshare.Name, fairshare.New, 0},
	{priority.Name, priority.New, 0},
	{backfill.Name, backfill.New, 0}, // before FirstCome: a job with an earmark has its turn before older jobs
	{firstcome.Name, firstcome.New, 0},
	{taskorder.Name, taskorder.New, 0},

	// What a queue may hold, checked before any node.
	{tenantadmission.Name, tenantadmission.New, 0},

	// Which nodes are feasible: by what they are, then by what is free. The first six are in the
	// order in which the rejections of models are explained.
	{clusterfilter.Name, clusterfilter.New, 0},
	{gpumatchingfilter.Name, gpumatchingfilter.New, 0},
	{labelmatchingfilter.Name, labelmatchingfilter.New, 0},
	{statusfilter.Name, statusfilter.New, 0},
	{backendframeworkfilter.Name, backendframeworkfilter.New, 0},
	{localpathfilter.Name, localpathfilter.New, 0},
	{labelfilter.Name, labelfilter.New, 0},
	{noderesourcefilter.Name, noderesourcefilter.New, 0},
	{affinityrequiredfilter.Name, affinityrequiredfilter.New, 0},
	{tainttoleration.Name, tainttoleration.New, 3},
	{spotinstancemanager.Name, spotinstancemanager.New, 10},
	{isolationfilter.Name, isolationfilter.New, 0},
	{scarceresourceavoidance.Name, scarceresourceavoidance.New, 2},
	{noderesourcesfit.Name, noderesourcesfit.New, 0},

	// Which node groups are feasible, for jobs that take whole nodes, and which is best.
	{nodegroupsizefilter.Name, nodegroupsizefilter.New, 0},
	{capacityfilter.Name, capacityfilter.New, 0},
	{resourceutilizationscorer.Name, resourceutilizationscorer.New, 1},

	// Which feasible node is best.
	{fillvalue.Name, fillvalue.New, 1},
	{placementscorer.Name, placementscorer.New, 1},
	{modelfilelocalityscorer.Name, modelfilelocalityscorer.New, 1},
	{devicefitscorer.Name, devicefitscorer.New, 1},
	{affinityscorer.Name, affinityscorer.New, 2},
	{wiringscorer.Name, wiringscorer.New, 1},
	{domainscorer.Name, domainscorer.New, 1},

	// Which replicas are kept when a model has too many; PlacementScorer decides between equals.
	{statusscorer.Name, statusscorer.New, 100},
	{offloadlayerscorer.Name, offloadlayerscorer.New, 10},

	// What is evicted if nothing else helps: the means that costs other jobs least is first.
	{consolidate.Name, consolidate.New, 0},
	{reclaim.Name, reclaim.New, 0},
	{preempt.Name, preempt.New, 0},
	{stalegang.Name, stalegang.New, 0},
	{doublebooking.Name, doublebooking.New, 0},

	// What is protected from eviction.
	{minruntime.Name, minruntime.New, 0},
	{disruptionbudget.Name, disruptionbudget.New, 0},
}

// others lists the plugins that are not in the default profile.
var others = []entry{
	{bestfit.Name, bestfit.New, 1},
	{fgd.Name, fgd.New, 1},
	{deviceorder.Name, deviceorder.New, 1},
	{noderesourcesfitplus.Name, noderesourcesfitplus.New, 1},
	{gpupacking.Name, gpupacking.New, 1},
	{randomfit.Name, randomfit.New, 1},
}

// Registry returns a registry of all plugins that are included in Berth. Each call returns
// a new one, to which a program may add its own plugins.
func Registry() *engine.Registry {
	r := engine.NewRegistry()
	for _, p := range slices.Concat(plugins, others) {
		if err := r.RegisterPluginBuilder(p.name, p.build); err != nil {
			panic(err) // two entries of plugins have the same name
		}
	}
	return r
}

// Profile returns the default profile: all plugins that are included in Berth, with their
// default weights and without arguments. The caller may change it.
func Profile() engine.Profile {
	out := make(engine.Profile, 0, len(plugins))
	for _, p := range plugins {
		out = append(out, engine.PluginConfig{Name: p.name, Weight: p.weight})
	}
	return out
}

// ReasonDoc documents a reason and names the plugin that gives it.
type ReasonDoc struct {
	Plugin string // "engine" for the reasons of the engine itself
	engine.ReasonDoc
}

// Reasons returns the reasons of all rejections, protections and evictions: those of the
// engine, then those of the plugins in the order of the default profile.
func Reasons() []ReasonDoc {
	var out []ReasonDoc
	list := func(plugin string, docs []engine.ReasonDoc) {
		for _, d := range docs {
			out = append(out, ReasonDoc{plugin, d})
		}
	}
	list("engine", engine.Reasons)
	for _, p := range plugins {
		built, err := p.build(engine.NoArguments{})
		if err != nil {
			panic(err) // the default profile gives no arguments
		}
		if d, ok := built.(engine.Documented); ok {
			list(p.name, d.Reasons())
		}
	}
	return out
}
