// Package admission answers the admission requests about models: what can never be served is
// denied, so that a mistake is seen at once.
package admission

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/kube/internal/controller"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Path is where the handler is served.
const Path = "/validate-models"

// Modes say what happens to a model that no node can ever serve.
const (
	Deny = "deny"
	Warn = "warn" // it is allowed with a warning, such as if groups are scaled from zero
)

// Cluster says whether a model can be served.
type Cluster interface {
	Admit(o, old *v1alpha1.Model) (controller.Verdict, error)
}

// Handler answers admission requests. Its fields are set before it is used.
type Handler struct {
	Cluster Cluster
	Mode    string      // Deny or Warn
	Ready   func() bool // whether all objects of the cluster are known; until then, models are allowed
	Log     *slog.Logger
	Observe func(result string, took time.Duration) // may be nil

	waiting atomic.Int32 // the requests that are being answered
}

// maxWaiting is how many requests are answered at the same time. They are decided one after the
// other, and the API server waits for a few seconds only.
const maxWaiting = 64

// maxBody is how large a request may be. The API server limits objects to about 3 MiB.
const maxBody = 8 << 20

// maxMessage is how long a message may be, in bytes.
const maxMessage = 16 << 10

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	if r.Method != http.MethodPost {
		http.Error(w, "want POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the request cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil || review.Request == nil {
		http.Error(w, "want an AdmissionReview of admission.k8s.io/v1 with a request", http.StatusBadRequest)
		return
	}
	answer, result := h.answer(review.Request)
	answer.UID = review.Request.UID
	if h.Observe != nil {
		h.Observe(result, time.Since(begin))
	}
	w.Header().Set("Content-Type", "application/json")
	out := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}, Response: answer}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		h.Log.Debug("The answer to an admission request could not be sent.", "error", err)
	}
}

// answer returns the answer, and a word for it: allowed, denied, warned or failed.
func (h *Handler) answer(r *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, string) {
	allowed := &admissionv1.AdmissionResponse{Allowed: true}
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update || r.SubResource != "" || r.Kind.Kind != v1alpha1.KindModel {
		return allowed, "allowed"
	}
	o, err := decode(r.Object.Raw)
	if err != nil {
		return denied(http.StatusUnprocessableEntity, "ModelInvalid", "the model cannot be read: "+err.Error()), "denied"
	}
	var old *v1alpha1.Model
	if r.Operation == admissionv1.Update {
		if old, err = decode(r.OldObject.Raw); err != nil {
			old = nil // what was stored cannot be read any more: the model counts as new
		}
	}
	if o.DeletionTimestamp != nil {
		return allowed, "allowed"
	}
	if o.Namespace == "" {
		o.Namespace = r.Namespace
	}
	if o.Name == "" {
		o.Name = "x" // the API server sets the name after generateName later
	}
	if !h.Ready() {
		return warned("berth-controller has just started and does not know the nodes yet, so that the model was not checked"), "warned"
	}
	defer h.waiting.Add(-1)
	if h.waiting.Add(1) > maxWaiting {
		return warned("too many models are checked at the same time, so that this one was not; its condition Admitted will say whether nodes can serve it"), "failed"
	}
	verdict, err := h.Cluster.Admit(o, old)
	switch {
	case err != nil:
		h.Log.Error("A model could not be checked.", "model", o.Namespace+"/"+o.Name, "error", err)
		return warned("the model was not checked: " + err.Error()), "failed"
	case verdict.Problem != "":
		return denied(http.StatusUnprocessableEntity, "ModelInvalid", verdict.Problem), "denied"
	case verdict.Warning != "":
		return warned(verdict.Warning), "warned"
	case verdict.Infeasible == "":
		return allowed, "allowed"
	case h.Mode == Warn:
		return warned(verdict.Infeasible), "warned"
	}
	return denied(http.StatusForbidden, verdict.Reason, verdict.Infeasible), "denied"
}

func decode(raw []byte) (*v1alpha1.Model, error) {
	o := &v1alpha1.Model{}
	if len(raw) == 0 {
		return nil, fmt.Errorf("there is no object")
	}
	return o, json.Unmarshal(raw, o)
}

func denied(code int32, reason, message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: metav1.StatusReason(reason), Message: cut(message),
	}}
}

// warned allows the model. The API server limits each warning to 4096 characters together, and
// prints long ones in parts.
func warned(message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{cut(message)}}
}

func cut(message string) string {
	if len(message) > maxMessage {
		return message[:maxMessage] + "…"
	}
	return message
}
