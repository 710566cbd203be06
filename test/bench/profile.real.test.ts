import { expect, test } from 'vitest'
import { partOf, readCosts } from '../../bench/profile.ts'

const frame = (functionName: string, url: string) => ({ functionName, url, lineNumber: 0, columnNumber: 0 })

test('the parts of a profile share the processor time of the main thread in the turns of the server', async () => {
  const frames = [
    frame('(idle)', ''),
    frame('(garbage collector)', ''),
    frame('writeLatin1String', ''),
    frame('parserOnIncoming', 'node:_http_server'),
    frame('reuse', '/app/src/cache/cache.ts'),
  ]
  const nodes = frames.map((callFrame, id) => ({ id, callFrame }))
  // At 10, 20, … microseconds; the last two are after the turn.
  const samples = [0, 1, 2, 2, 3, 4, 0, 4, 4]
  const profile = { nodes, samples, startTime: 0, timeDeltas: samples.map(() => 10) }
  const turn = { pid: 1, from: 0, to: 75, requests: 100, mainSeconds: 0.001, allSeconds: 0.002 }
  expect(Object.fromEntries(await readCosts(profile, [turn], partOf))).toEqual({
    collector: 2,
    'socket writes': 4,
    'node:http': 2,
    cache: 2,
  })
})

test.each([
  ['the parser of undici', 'wasm-function[20]', 'wasm://wasm/00034eea', 'undici'],
  ['a package in the bundle', 'get', '../node_modules/lru-cache/dist/index.js', 'other packages'],
  ['a folder of Trellis', 'run', '../src/exchange/handle.ts', 'exchange'],
  ['another folder of Trellis', 'send', '../src/server/send/send-response.ts', 'rest of Trellis'],
  ['a part of Node', 'nextTick', 'node:internal/process/task_queues', 'rest of Node'],
  ['native code', '(program)', '', 'outside JavaScript'],
])('%s is counted as its part', (_title, functionName, source, part) => {
  expect(partOf(frame(functionName, source), source)).toBe(part)
})
