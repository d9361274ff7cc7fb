package diagnosis

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// findStopped finds a peer whose process is stopped.
func findStopped(v *view, e *edge) (p proof, ok bool) {
	pid := 0
	if s, silent := v.silentRanks[e.to]; silent && s.process.Stopped {
		pid = s.process.PID
	} else if r := v.ranks[e.to]; r != nil {
		for _, a := range r.Attached {
			if a.Stopped {
				pid = a.PID
			}
		}
	}
	if pid == 0 {
		return p, false
	}
	return stoppedProof(e.to, pid, hostOf(v.address(e.to))), true
}

func stoppedProof(rank, pid int, host string) proof {
	return proof{
		reason:   fmt.Sprintf("process %d, which is rank %d, is stopped by a signal or a debugger", pid, rank),
		evidence: []string{fmt.Sprintf("its state in /proc/%d/stat is T", pid)},
		step:     fmt.Sprintf("continue process %d on %s: kill -CONT %d, or in the debugger", pid, host, pid),
	}
}

// findStoppedJobs finds stopped processes of jobs from which no rank has answered here. Which ranks wait for these
// processes is known only on other hosts.
func (v *view) findStoppedJobs() (list []Finding) {
	for _, rank := range slices.Sorted(maps.Keys(v.silentRanks)) {
		s := v.silentRanks[rank]
		if !s.process.Stopped ||
			slices.ContainsFunc(slices.Collect(maps.Values(v.ranks)),
				func(r *rankState) bool { return r.job == s.job }) {
			continue
		}
		p := stoppedProof(rank, s.process.PID, "this host")
		list = append(list, Finding{
			Cause: ProcessStopped, Certain: true, Rank: rank, Peer: AnyRank,
			Text: p.reason + "; which ranks wait for it is known on their hosts",
			Why:  p.reason, Evidence: p.evidence, Step: p.step, Waiting: []int{}, named: AnyRank,
		})
	}
	return list
}

// findBrokenKernels finds stand-ins whose kernel has failed, or whose role has broken the rules of its interface,
// although no rank is known to wait for them. A host that waits for an answer from the role has nothing to send to it,
// so its wait is not known here.
func (v *view) findBrokenKernels(found []Finding) (list []Finding) {
	for _, rank := range slices.Sorted(maps.Keys(v.ranks)) {
		r := v.ranks[rank]
		cause, p, ok := brokenKernel(rank, r)
		if !ok || !isBroken(r) || slices.ContainsFunc(found, func(f Finding) bool { return f.Rank == rank }) {
			continue
		}
		list = append(list, Finding{
			Cause: cause, Certain: true, Rank: rank, Peer: AnyRank,
			Text: p.reason + "; which ranks wait for it is known on their hosts",
			Why:  p.reason, Evidence: p.evidence, Step: p.step, Waiting: []int{}, named: AnyRank,
		})
	}
	return list
}

// kernelFailed returns the reason why the kernel of a stand-in has failed. It returns "" if the kernel has not failed,
// or if an operation has completed since.
func (v *view) kernelFailed(rank int) string {
	if r := v.ranks[rank]; r != nil && r.Role == state.RoleStandin && r.failed != nil {
		return r.failed.Reason
	}
	return ""
}

// isBroken reports whether a rank's kernel needs intervention before it can continue.
func isBroken(r *rankState) bool {
	s := r.KernelStats
	return r.KernelState == state.KernelFailed || s != nil && (s.Failed || s.Simulation != nil && s.Simulation.Fault)
}

// findEnded finds a peer whose process no longer exists.
func findEnded(v *view, e *edge) (p proof, ok bool) {
	if rank := v.ranks[e.to]; rank != nil {
		if from, to := v.bothReports(e); from != nil && to != nil && !e.isSend &&
			(side{senderReport: to}).declaredUnreachable(e.seconds) {
			return p, false // its message may be lost
		}
		if rank.Role != state.RoleHost || rank.job != "" || len(rank.Attached) > 0 || rank.Engine.SinceLastEnd == nil ||
			len(v.outEdges[e.to]) > 0 {
			return p, false
		}
		return proof{
			reason:   fmt.Sprintf("the program of rank %d has exited: no process is attached to the rank", e.to),
			evidence: []string{fmt.Sprintf("its last operation ended %s ago", words.Duration(*rank.Engine.SinceLastEnd))},
			step: fmt.Sprintf("look for the exit code, or a core file, of the program of rank %d; then start all "+
				"ranks again", e.to),
		}, true
	}
	if _, silent := v.silentRanks[e.to]; silent || v.isDeployed(e.to) {
		return p, false
	}
	host, job := v.jobAt(e.to)
	if job == "" {
		return p, false
	}
	return proof{
		reason: fmt.Sprintf("rank %d has no process on this host, where it belongs: it has exited, or has not "+
			"called MPI_Init", e.to),
		evidence: []string{fmt.Sprintf("the other ranks of job %s at %s answer", job, host)},
		step: fmt.Sprintf("look at what zrlctl run or the launcher says of rank %d; then start the job again",
			e.to),
	}, true
}

// endCause returns the cause at the end of a path of waits. It explains the wait e by the state of rank e.to, which
// itself does not wait.
func (v *view) endCause(e *edge) (cause string, p proof) {
	if e.to == AnyRank {
		return AnySourceUnmet, proof{
			reason: "no rank has sent a message that it matches", evidence: v.otherFacts(e.from),
			step: "look which rank should send: zrlctl status shows what each waits for",
		}
	}
	if rank, silent := v.silentRanks[e.to]; silent {
		p = proof{
			reason:   fmt.Sprintf("process %d, which is rank %d, is there and does not answer", rank.process.PID, e.to),
			evidence: []string{"its socket is there, and has not answered within 2 s"},
			step: fmt.Sprintf("look what it does: cat /proc/%d/stack as root, or gdb -p %d", rank.process.PID,
				rank.process.PID),
		}
		if rank.process.PID == 0 { // too many tools are waiting for its answer
			p.reason = fmt.Sprintf("the process of rank %d is there and does not answer", e.to)
			p.step = "find it among the processes of its host, and whether it is stopped: state T of ps"
		}
		return ProcessSilent, p
	}
	if r := v.ranks[e.to]; r.cutShort {
		return StateUnknown, proof{
			reason:   fmt.Sprintf("rank %d waits for more than it has reported, and for nothing of what it has", e.to),
			evidence: []string{"its report was cut short, as it has more peers than a report has room for"},
			step:     v.askDaemon(e.to),
		}
	}
	return v.endCauseKnown(e, v.ranks[e.to])
}

// brokenKernel describes the fault of the kernel of a rank that has answered. It returns false if the kernel works.
func brokenKernel(rank int, r *rankState) (cause string, p proof, ok bool) {
	if r.KernelState == state.KernelFailed || r.KernelState == state.KernelEnded {
		return KernelFailed, proof{
			certain:  true,
			reason:   fmt.Sprintf("the kernel %s of stand-in %d is no longer running", r.Kernel, rank),
			evidence: []string{"its state is " + string(r.KernelState) + errorText(r.KernelError)},
			step:     "restart zrlmpid, with the kernel for this program",
		}, true
	}
	if program, ok := strings.CutPrefix(r.Kernel, config.KernelExec+":"); ok && r.KernelBlockReason != "" {
		return RoleHolds, proof{
			certain:  true,
			reason:   fmt.Sprintf("the program of stand-in %d exchanges no messages: %s", rank, r.KernelBlockReason),
			evidence: []string{fmt.Sprintf("it is %s, and no operation of rank %d is pending", program, rank)},
			step:     "correct the program (docs/mpe_interface.md has the rules): it is started again when it exits",
		}, true
	}
	if r.KernelBlockReason != "" {
		return RoleHolds, proof{
			certain:  true,
			reason:   fmt.Sprintf("the role of stand-in %d, in simulation, holds a signal: %s", rank, r.KernelBlockReason),
			evidence: []string{fmt.Sprintf("its kernel is %s, and no operation of rank %d is pending", r.Kernel, rank)},
			step: "look at the signal in the waves at this cycle, correct the role, and restart zrlmpid " +
				"(docs/cosim.md has the rules)",
		}, true
	}
	return "", p, false
}

// endCauseKnown implements endCause for the case that the rank waited for has answered.
func (v *view) endCauseKnown(e *edge, rank *rankState) (cause string, p proof) {
	if cause, p, ok := brokenKernel(e.to, rank); ok {
		return cause, p
	}
	if rank.Role == state.RoleHost && rank.job == "" && len(rank.Attached) == 0 {
		return NotAttached, proof{
			certain:  true,
			reason:   fmt.Sprintf("no program uses rank %d, which its daemon keeps for one", e.to),
			evidence: []string{fmt.Sprintf("rank %d has run: host, and no process is attached to it", e.to)},
			step: fmt.Sprintf("start the program of rank %d: ZRLMPI_SOCKET=… ZRLMPI_RANK=%d PROGRAM, or zrlctl "+
				"send or recv", e.to, e.to),
		}
	}
	for _, o := range v.outEdges[e.to] {
		if o.isIdle {
			return KernelWaits, proof{
				certain:  true,
				reason:   fmt.Sprintf("the kernel %s of stand-in %d waits for a message itself", rank.Kernel, e.to),
				evidence: []string{o.wait.Text},
				step:     fmt.Sprintf("send rank %d what its kernel expects, or give it another kernel", e.to),
			}
		}
	}
	if many := creditText(e); many != "" {
		return CreditExhausted, proof{
			reason: fmt.Sprintf("%s messages of rank %d as rank %d allows wait there for receives, and its program "+
				"posts none", many, e.from, e.to),
			evidence: []string{fmt.Sprintf("the message credit of rank %d is %d; rank %d has %s of it that no "+
				"receive has matched", e.from, e.peer.Extended.MessageCredit, e.to,
				words.Plural(v.unexpected(e), "message"))},
			step: fmt.Sprintf("look why rank %d does not receive: it computes, or is in another part of the program; "+
				"or send less ahead of it", e.to),
		}
	}
	p = v.computesProof(e, rank)
	p.certain = e.deferred == nil && len(v.outEdges[e.to]) == 0 && idleSeconds(rank.Engine) >= v.minAge &&
		len(rank.Attached) > 0 &&
		!rank.Engine.LastFailed
	if rank.failed == nil || len(v.outEdges[e.to]) > 0 {
		return ProgramComputes, p
	}
	p.reason = fmt.Sprintf("the last operation of rank %d (%s) has failed, and it has not %s since", e.to,
		rank.failed.What(),
		missingCallText(e))
	p.evidence = append([]string{fmt.Sprintf("rank %d: %s", e.to, rank.failed.Reason)}, p.evidence...)
	p.step = fmt.Sprintf("correct what has failed on rank %d, and have its program end the job when a call fails "+
		"(MPI_Abort)", e.to)
	return CallFailed, p
}

// idleSeconds returns for how many seconds an engine without a pending operation has been idle.
func idleSeconds(e *state.Engine) float64 {
	switch {
	case e.SinceLastEnd != nil:
		return *e.SinceLastEnd
	case e.Uptime > 0:
		return e.Uptime
	}
	return math.Inf(1)
}

// creditText returns a clause with the number of messages that wait at the receiver. It returns "" unless the send
// waits because of a lack of credit.
func creditText(e *edge) string {
	if !e.isSend || e.peer == nil || e.peer.Extended == nil {
		return ""
	}
	switch {
	case e.state == handshake.Held && e.peer.Extended.MessageCredit == 0:
		return "as many"
	case e.state == handshake.WaitClear && e.peer.Extended.CreditScarce:
		return "almost as many"
	}
	return ""
}

// missingCallText describes the call that the wait e needs but that rank e.to has not made. The text begins with a past
// participle.
func missingCallText(e *edge) string {
	switch {
	case e.call != nil:
		return fmt.Sprintf("called %s (call %d in communicator %d)", e.call.Collective, e.call.Number, e.call.Comm)
	case !e.isSend:
		return "sent the message"
	}
	return "posted the receive"
}

// computesProof explains the wait e by the program of rank e.to, which is running but has not made the call that e
// waits for.
func (v *view) computesProof(e *edge, rank *rankState) (p proof) {
	p.reason = fmt.Sprintf("rank %d runs and waits for nothing: its program computes, or does something else, and "+
		"has not %s", e.to, missingCallText(e))
	if rank.Engine.SinceLastEnd == nil {
		p.evidence = append(p.evidence, fmt.Sprintf("no operation of rank %d is complete yet, and none is pending", e.to))
	} else {
		p.evidence = append(p.evidence,
			fmt.Sprintf("the last operation of rank %d ended %s ago, and none is pending", e.to,
				words.Duration(*rank.Engine.SinceLastEnd)))
	}
	for i := range v.outEdges[e.to] {
		if o := v.outEdges[e.to][i]; !v.isOldEnough(o) && !o.isIdle {
			p.reason = fmt.Sprintf("rank %d exchanges messages with other ranks, and has not %s", e.to, missingCallText(e))
			p.evidence = []string{fmt.Sprintf("its longest wait is %s old", words.Duration(o.seconds))}
			break
		}
	}
	p.step = fmt.Sprintf("look what rank %d does (top, gdb)", e.to)
	for _, a := range rank.Attached {
		p.step = fmt.Sprintf("look what process %d on %s does, which is rank %d: top -p %d, gdb -p %d", a.PID,
			hostOf(v.address(e.to)), e.to, a.PID, a.PID)
	}
	return p
}

// askDaemon returns the next step for the user if the state of a rank that others wait for is unknown.
func (v *view) askDaemon(rank int) string {
	if v.belongsToJob(rank) {
		return fmt.Sprintf("run zrlctl why on %s, where its process can be seen", hostOf(v.address(rank)))
	}
	return fmt.Sprintf("ask its daemon, too: zrlctl why --daemons http://%s:9627", hostOf(v.address(rank)))
}

// unexpected returns the number of messages from rank e.from for which rank e.to has not posted a matching receive.
func (v *view) unexpected(e *edge) int {
	if at := v.peerReport(e.to, e.from); at != nil {
		return at.Unexpected
	}
	return 0
}

// otherFacts returns facts about the other ranks. They serve as evidence for a receive from any source, which any of
// them could complete.
func (v *view) otherFacts(rank int) (facts []string) {
	idle := []int{}
	for other := range v.members {
		if r := v.ranks[other]; r != nil && other != rank && len(v.outEdges[other]) == 0 {
			idle = append(idle, other)
		}
	}
	if len(idle) > 0 {
		facts = append(facts, fmt.Sprintf("no operation is pending on %s", ranksText(idle)))
	}
	return facts
}

func errorText(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}
