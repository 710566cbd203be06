import { gunzipSync } from 'node:zlib'
import type { Probe, ReadyResponse } from './peer.ts'
import { fileTargets } from './peers/targets.ts'
import { trellis } from './peers/trellis.ts'
import { factsOf, type Scenario } from './scenarios.ts'

const ofConnection: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'date', 'transfer-encoding'])

/** What bare node:http serves in its place; it makes its coded forms and its 304 itself. */
export function readyResponses(scenario: Scenario, response: Probe): readonly ReadyResponse[] {
  const { expects, script } = factsOf(scenario)
  if (expects === 'forwarded' || response.status === 304) return []
  const target = script === undefined ? (trellis.targets[scenario] ?? '') : fileTargets.hit
  const { 'content-encoding': coding, ...rest } = response.headers
  const content = coding === 'gzip' ? gunzipSync(response.content) : response.content
  const kept = Object.entries(rest).filter(([name]) => !ofConnection.has(name))
  const headers = { ...Object.fromEntries(kept), 'content-length': String(content.length) }
  return [{ target, status: response.status, headers, content: content.toString() }]
}
