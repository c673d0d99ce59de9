// Package standard lists the plugins that come with Berth and the profile they
// form unless a configuration says otherwise.
//
// It decides order and weights, and refuses to know what any plugin does with them.
package standard

import (
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/affinityrequiredfilter"
	"github.com/berth-project/berth/plugins/affinityscorer"
	"github.com/berth-project/berth/plugins/backendframeworkfilter"
	"github.com/berth-project/berth/plugins/capacityfilter"
	"github.com/berth-project/berth/plugins/clusterfilter"
	"github.com/berth-project/berth/plugins/consolidate"
	"github.com/berth-project/berth/plugins/devicefitscorer"
	"github.com/berth-project/berth/plugins/deviceorder"
	"github.com/berth-project/berth/plugins/disruptionbudget"
	"github.com/berth-project/berth/plugins/fairshare"
	"github.com/berth-project/berth/plugins/firstcome"
	"github.com/berth-project/berth/plugins/gpumatchingfilter"
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
)

type entry struct {
	name   string
	build  engine.PluginBuilder
	weight int64 // 0 for a plugin without scores
}

// plugins are all of them, in the default profile's order: the order in which
// comparisons are made and filters asked. Filters that look at one field come
// before those that count; whether there is room is asked last, so that a
// refusal counts a node as full only if nothing else is wrong with it.
//
// The weights, and what they are for. A score is 0 to 100 before weighting, so a
// plugin of weight 10 outvotes others that add up to less than 10.
//
//	10  spot-instance-manager      whether a machine can vanish matters more than how well it is packed
//	 3  TaintToleration            the operator's wish about a node
//	 2  AffinityScorer             the user's wish about a task
//	 2  ScarceResourceAvoidance    keeping tasks that need no device off machines that have some counts twice what packing does
//	 1  NodeResourcesFitPlus       packing and spreading, per resource
//	 1  PlacementScorer            the same for models: what operators and users wish still outvotes it
//	 1  ModelFileLocalityScorer    its full score is 5, so files that are there decide between layouts that are nearly alike
//	 1  DeviceFitScorer            its full score is 10: a device no larger than needed is worth a download, and less than a layout
//	 1  DeviceOrder                among the devices of a node, where nothing else has a say
//	 1  ResourceUtilizationScorer  among node groups, where nothing else has a say
//
// Which replicas are kept is a sum of its own:
//
//	100  StatusScorer              whether a replica is healthy comes before all else
//	 10  OffloadLayerScorer        then how much of it is on devices
//	  1  PlacementScorer           then where it is
var plugins = []entry{
	// Whose turn it is.
	{fairshare.Name, fairshare.New, 0},
	{priority.Name, priority.New, 0},
	{firstcome.Name, firstcome.New, 0},
	{taskorder.Name, taskorder.New, 0},

	// Who may have it at all, before any node is looked at.
	{tenantadmission.Name, tenantadmission.New, 0},

	// Which nodes: what they are, then what they have left. The first six are in the
	// order in which models are told why not.
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

	// Which groups of nodes, for those who want whole ones.
	{nodegroupsizefilter.Name, nodegroupsizefilter.New, 0},
	{capacityfilter.Name, capacityfilter.New, 0},
	{resourceutilizationscorer.Name, resourceutilizationscorer.New, 1},

	// Which of them is best.
	{noderesourcesfitplus.Name, noderesourcesfitplus.New, 1},
	{placementscorer.Name, placementscorer.New, 1},
	{modelfilelocalityscorer.Name, modelfilelocalityscorer.New, 1},
	{devicefitscorer.Name, devicefitscorer.New, 1},
	{affinityscorer.Name, affinityscorer.New, 2},
	{deviceorder.Name, deviceorder.New, 1},

	// Which replicas a model keeps that gets fewer; PlacementScorer has the last word.
	{statusscorer.Name, statusscorer.New, 100},
	{offloadlayerscorer.Name, offloadlayerscorer.New, 10},

	// Who has to go for whom, if nothing else helps: what costs others least first.
	{consolidate.Name, consolidate.New, 0},
	{reclaim.Name, reclaim.New, 0},
	{preempt.Name, preempt.New, 0},
	{stalegang.Name, stalegang.New, 0},

	// Who stays, whoever needs the room.
	{minruntime.Name, minruntime.New, 0},
	{disruptionbudget.Name, disruptionbudget.New, 0},
}

// Registry knows all plugins that come with Berth. Each call makes a new one,
// to which a program may add its own.
func Registry() *engine.Registry {
	r := engine.NewRegistry()
	for _, p := range plugins {
		if err := r.RegisterPluginBuilder(p.name, p.build); err != nil {
			panic(err) // two lines of the table above have one name
		}
	}
	return r
}

// Profile is what runs unless a configuration says otherwise.
func Profile() engine.Profile {
	out := make(engine.Profile, 0, len(plugins))
	for _, p := range plugins {
		out = append(out, engine.PluginConfig{Name: p.name, Weight: p.weight})
	}
	return out
}

// ReasonDoc documents a reason and names the plugin that gives it.
type ReasonDoc struct {
	Plugin string // "engine" for those of the engine itself
	engine.ReasonDoc
}

// Reasons are all that a refusal may give, and those for which a victim is protected: the
// engine's, then those of the plugins in the default profile's order.
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
