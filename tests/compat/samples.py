"""One file of each form, as the systems write them."""

from __future__ import annotations

FEEDBACK = """\
{"type": "FEEDBACK", "from_node": "test-payment-model", "to_node": "create-payment-model", "feedback_type": "FIX_REQUEST", \
"message": "PaymentSpec failing", "suggested_fix": "Add validates :email", "priority": "high", \
"artifacts": ["spec/models/payment_spec.rb:42-45"], "timestamp": "2025-01-21T14:00:00Z", "status": "resolved", "round": 2, \
"resolved_at": "2025-01-21T14:05:00Z", "unknown": {"kept": 1.50}}
{"from_node":"create-payments-controller","to_node":"create-payment-service","feedback_type":"CONTEXT_REQUEST",\
"message":"Need the signature","requested_info":"method_name","priority":"medium","status":"verifying","round":1}

{"from_node":"create-payment-processor","to_node":"workflow-root","feedback_type":"DEPENDENCY_MISSING",\
"message":"requires Refund","suggested_action":"Add Refund","priority":"critical","status":"failed","failed_at":"2025-01-21T15:00:00Z"}
{"from_node":"create-invoice-service","to_node":"plan-invoice","feedback_type":"ARCHITECTURE_ISSUE","message":"a circle","priority":"low"}
"""

LOOPS = """\
{"feedback_loops": [
  {"id": "loop-1737468000000", "triggered_at": "2025-01-21T14:00:00.000Z", "source_agent": "developer",
   "target_agents": ["architect", "pm"], "issue_type": "constraint_violation", "severity": "blocking",
   "description": "WebSocket not supported by current hosting", "status": "resolved", "state": "RESOLVED",
   "details": {"requirement_id": "REQ-123"}, "resolution": {"decision": "Use polling"}, "resolved_at": "2025-01-21T14:10:00.000Z"},
  {"id": "loop-1737468000001", "source_agent": "architect", "target_agents": "pm", "issue_type": "technical_infeasibility",
   "description": "not achievable", "status": "escalated", "state": "ESCALATING", "escalation_reason": "timeout"},
  {"id": "loop-1737468000002", "source_agent": "qa", "target_agents": ["pm", "developer"], "issue_type": "missing_requirement",
   "severity": "medium", "description": "no CSV export", "status": "pending", "state": "WAITING_RESPONSE"}
 ],
 "statistics": {"active": 2, "resolved": 1, "total": 3}}
"""

DEFECTS = """\
[{"defect": "Missing Authentication Requirement", "severity": "Critical", "phase_injected": "Planning",
  "phase_detected": "Design Review", "correction_attempts": {"planning": 1, "design": 1}, "cost_impact": 0.05, "latency_impact": 25},
 {"description": "no index", "injected_phase": "design", "detected_phase": "test", "attempts": 1, "cost_usd": 0.01, "latency": 3.5}]
"""

PROGRESS = """\
{
  "feedback_loop": {
    "enabled": true, "current_iteration": 2, "max_iterations": 5, "status": "IMPLEMENTATION_VERIFIED",
    "consecutive_review_failures": 0, "consecutive_test_failures": 0,
    "iterations": [
      {"number": 1, "implementation": "Created FilterDropdown component", "review_result": "PASS", "test_result": "FAIL",
       "test_failures": ["FilterDropdown.test.tsx:45 - missing mock"]},
      {"number": 2, "implementation": "Fixed test mock issue", "review_result": "PASS", "test_result": "PASS",
       "status": "IMPLEMENTATION_VERIFIED"}
    ]
  },
  "another_skill": {"kept": true}
}
"""

SCRATCHPAD = """\
# Notes of the team, which stay

## Iteration 1
- **Implementation**: Created FilterDropdown component
- **Review Result**: FAIL - no label
- **Test Result**: not run
- **Status**: continuing

## Iteration 2
- **Implementation**: Added a label
- **Review Result**: PASS
- **Test Result**: FAIL - 2 issues
  - FilterDropdown.test.tsx:45 - missing mock
  - FilterDropdown.test.tsx:60 - no focus
- **Status**: continuing
"""

SAMPLES = {
    "feedback-jsonl": FEEDBACK,
    "loops": LOOPS,
    "defects": DEFECTS,
    "progress": PROGRESS,
    "scratchpad": SCRATCHPAD,
}
