import { readFileSync } from 'node:fs'
import { Agent as PlainAgent, request as plainRequest } from 'node:http'
import { Agent as TlsAgent, request as tlsRequest } from 'node:https'
import { quantile } from '../../bench/statistics.ts'
import type { Readings, Reads } from './attack-row.ts'

// The honest reader: its own process, so that what the attackers' process does is not in its times. It asks at a steady pace,
// whether or not earlier requests have been answered, and counts from the moment at which it wanted to ask.

const everyMs = 25
const maxOutstanding = 400
const timeoutMs = 10_000
const address = '127.0.0.3'

export type HonestCommand =
  | {
      readonly kind: 'begin'
      readonly origin: string
      readonly reads: Reads
      /** URL that is read without the gateway: how long the machine itself takes. */
      readonly direct: string
      /** The process of the gateway. */
      readonly pid: number
    }
  | { readonly kind: 'end' }

const waitedMs = (pid: number | 'self'): number => {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}
/**
 * The clock, stopped while the main thread of the gateway or of this process was ready to run and the machine ran other programs
 * (Linux): a busy machine is no fault of the gateway.
 */
const clockMs = (pid: number): number => performance.now() - waitedMs(pid) - waitedMs('self')

type Kind = 'miss' | 'hit' | 'direct'

const isTls = (origin: string): boolean => origin.startsWith('https:')

// Misses that wait must not keep hits from being asked for.
const options = { keepAlive: true, maxSockets: 200 }
const agents = {
  plain: { miss: new PlainAgent(options), hit: new PlainAgent(options), direct: new PlainAgent(options) },
  tls: { miss: new TlsAgent(options), hit: new TlsAgent(options), direct: new TlsAgent(options) },
}

let number = 0

const createPhase = ({ origin, reads, direct, pid }: Extract<HonestCommand, { kind: 'begin' }>) => {
  const times: Record<Kind, number[]> = { miss: [], hit: [], direct: [] }
  const failures: Record<string, number> = {}
  const outstanding = new Set<{ readonly kind: Kind; readonly began: number; end(): void }>()
  let requests = 0
  let lost = 0
  const asked: Record<Kind, number> = { miss: 0, hit: 0, direct: 0 }

  const ask = (kind: Kind): void => {
    if (outstanding.size >= maxOutstanding) return
    number += 1
    if (kind !== 'direct') requests += 1
    const began = clockMs(pid)
    let isOver = false
    const over = (failure: string | undefined): void => {
      if (isOver) return
      isOver = true
      outstanding.delete(mine)
      times[kind].push(Math.max(0, clockMs(pid) - began))
      if (failure !== undefined && kind !== 'direct') failures[failure] = (failures[failure] ?? 0) + 1
    }
    const url = kind === 'direct' ? direct : origin + reads[kind].replace('{n}', `${process.pid}${number}`)
    const send = isTls(url) ? tlsRequest : plainRequest
    // One in twenty of each kind comes on its own connection: new readers must get in too.
    asked[kind] += 1
    const agent = asked[kind] % 20 === 0 ? false : agents[isTls(url) ? 'tls' : 'plain'][kind]
    const request = send(
      url,
      { agent, localAddress: address, rejectUnauthorized: false, timeout: timeoutMs },
      (response) => {
        if (kind === 'hit' && !/; hit/.test(String(response.headers['cache-status']))) lost += 1
        response.resume()
        response.once('close', () => {
          if (!response.complete) over('broken off')
          else over(response.statusCode === 200 ? undefined : String(response.statusCode))
        })
      },
    )
    const mine = {
      kind,
      began,
      end: () => {
        over('no answer')
        request.destroy()
      },
    }
    outstanding.add(mine)
    request.once('timeout', mine.end)
    request.once('error', (error: NodeJS.ErrnoException) => over(error.code ?? error.message))
    request.end()
  }

  let turn = 0
  const timer = setInterval(() => {
    turn += 1
    ask(turn % 2 === 0 ? 'miss' : 'hit')
    if (turn % 4 === 0) ask('direct')
  }, everyMs / 2)

  const end = async (): Promise<Readings> => {
    clearInterval(timer)
    const latest = performance.now() + timeoutMs
    while (outstanding.size > 0 && performance.now() < latest) {
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    for (const one of outstanding) one.end()
    const max = (kind: Kind): number => times[kind].reduce((one, other) => Math.max(one, other), 0)
    return {
      requests,
      failures,
      lostHits: lost,
      missP99: quantile(times.miss, 0.99),
      missMax: max('miss'),
      hitP99: quantile(times.hit, 0.99),
      hitMax: max('hit'),
      directP99: quantile(times.direct, 0.99),
      directMax: max('direct'),
    }
  }
  return { end }
}

let phase: ReturnType<typeof createPhase> | undefined

process.on('message', (command: HonestCommand) => {
  if (command.kind === 'begin') {
    phase = createPhase(command)
    return
  }
  void phase?.end().then((readings) => process.send?.(readings))
})
process.on('disconnect', () => process.exit(0))
