import { gunzipSync } from 'node:zlib'
import type { Probe, ReadyAnswer } from './peer.ts'
import { fileTargets } from './peers/targets.ts'
import { trellis } from './peers/trellis.ts'
import { factsOf, type Scenario } from './scenarios.ts'

const ofConnection: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'date', 'transfer-encoding'])

/** What bare node:http serves in its place; it makes its coded forms and its 304 itself. */
export function readyAnswers(scenario: Scenario, answer: Probe): readonly ReadyAnswer[] {
  const { expects, script } = factsOf(scenario)
  if (expects === 'forwarded' || answer.status === 304) return []
  const target = script === undefined ? (trellis.targets[scenario] ?? '') : fileTargets.hit
  const { 'content-encoding': coding, ...rest } = answer.fields
  const content = coding === 'gzip' ? gunzipSync(answer.content) : answer.content
  const kept = Object.entries(rest).filter(([name]) => !ofConnection.has(name))
  const fields = { ...Object.fromEntries(kept), 'content-length': String(content.length) }
  return [{ target, status: answer.status, fields, content: content.toString() }]
}
