// Package cluster has the types that scheduling is about, and State, which holds
// them and records which task holds which part of which node.
//
// The types:
//
//   - A Node offers resources, such as CPU and memory, and Devices, such as GPUs.
//     Nodes with the same devices form a Group.
//   - A Job is what is queued and placed as a unit. It has one or more Alternatives,
//     which are tried in order, and each Alternative has Tasks and a minimum.
//   - A Task runs on one node. Its Shape is what it requests; the Need of a Shape is
//     the part of the request that is about devices. What a placed task holds of a
//     device is a Claim.
//   - A Queue holds jobs, and has a quota and limits. Queues form a tree.
//   - A Set is the jobs that are replicas of one workload, and a Budget protects
//     tasks of some jobs from eviction while too few of their tasks run.
//
// State is a deterministic state machine over a log of changes: the same changes on
// the same snapshot give the same Digest. There are two ways to change it. Apply
// makes a Change, which is a fact that is reported from outside or the decisions of
// a session. A Transaction makes decisions that can be undone. Both update the
// ledgers, lists, versions and the journal together. Plugins read State through a
// View.
//
// State consists of tables, and each table owns what it lists: fleet the nodes,
// roster the jobs and tasks, tree the queues and budgets, classes the running tasks
// of preemptible jobs, sets the sets of replicas, shapes the interned shapes, and
// journal the records with which changes are undone. An operation that changes
// several tables is a method of a type of its own, which has pointers to these
// tables: taskStates changes the status and the node of tasks, booking adds up what
// tasks hold, workload adds and removes jobs, specs changes the specs of jobs,
// accounts the specs of queues and inventory the specs of nodes, and sightings
// places tasks on the nodes on which they were seen. The apply method of a Change
// calls these.
//
// The package implements no policy, reads no clock, and does no input or output.
package cluster
