package manifest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/phrase"
	"github.com/berth-project/berth/internal/strict"
)

// unknownFields are fields of objects of Kubernetes that the types of their kinds do not have: mistakes
// in writing, or fields of later versions. Kubernetes ignores the former too.
type unknownFields map[unknownField]*unknownOf

// unknownField is the name of a field, and the kind of the objects that have it.
type unknownField struct{ kind, name string }

// unknownOf are the objects that have the field.
type unknownOf struct {
	near    string // a field that is known and has a similar name; "" if there is none
	objects tally
}

func (u *unknownFields) add(kind, id string, f strict.UnknownField) {
	if *u == nil {
		*u = unknownFields{}
	}
	at := unknownField{kind, f.Name}
	if (*u)[at] == nil {
		near, _ := nearest.Find(f.Name, f.Known)
		(*u)[at] = &unknownOf{near: near}
	}
	if list := (*u)[at].objects; len(list) == 0 || list[len(list)-1] != id {
		(*u)[at].objects.add(id)
	}
}

func (u *unknownFields) merge(o unknownFields) {
	for at, of := range o {
		if *u == nil {
			*u = unknownFields{}
		}
		if (*u)[at] == nil {
			(*u)[at] = &unknownOf{near: of.near}
		}
		(*u)[at].objects = append((*u)[at].objects, of.objects...)
	}
}

// note adds a note for each field of each kind.
func (u unknownFields) note(notes []string) []string {
	for _, at := range slices.SortedFunc(maps.Keys(u), func(a, b unknownField) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.name, b.name))
	}) {
		what, kind := "with the unknown field "+phrase.Quote(at.name), at.kind
		if near := u[at].near; near != "" {
			what += " (did you mean " + phrase.Quote(near) + "?)"
		}
		if kind == "Pod" || kind == "Node" {
			kind = strings.ToLower(kind)
		}
		notes = u[at].objects.note(notes, what, kind)
	}
	return notes
}
