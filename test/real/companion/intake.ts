import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { startHttpServer } from '../../support/http-server.ts'

export const token = 'a token of tests, 34 characters ok'

/** One change as the companion reports it. */
export type Change = {
  readonly kind: string
  readonly id?: number
  readonly name?: string
  readonly type?: string
  readonly taxonomy?: string
  readonly post?: number
  readonly reason?: string
  readonly before?: Readonly<Record<string, unknown>>
  readonly after?: Readonly<Record<string, unknown>>
}

export type Push = {
  readonly incarnation: string
  readonly site: number
  readonly sequence: number
  readonly check: string
  readonly previous: number
  readonly fingerprint: string
  readonly changes: readonly Change[]
  readonly overflow: boolean
  /** The `Trellis-Request` of the response. */
  readonly request?: string
}

export type Intake = {
  /** What TRELLIS_GATEWAYS names. */
  readonly origin: string
  readonly pushes: Push[]
  /** Requests that were refused, with the reason. */
  readonly refused: string[]
  /** What it does with the next pushes. */
  behaviour: 'accept' | 'hang' | 'redirect' | 'fail'
  close(): Promise<void>
}

const key = createHash('sha256').update(token).digest('hex').slice(0, 16)

/** The value of `Trellis-Signature`, as docs describe it: written a second time, from the description. */
export function sign(method: string, target: string, body = '', at = Date.now(), secret = token): string {
  const time = Math.floor(at / 1000)
  const hmac = createHmac('sha256', secret).update(`${method}\n${target}\n${time}\n${body}`).digest('hex')
  const name = createHash('sha256').update(secret).digest('hex').slice(0, 16)
  return `key=${name}, time=${time}, hmac=${hmac}`
}

function fault(signature: string, method: string, target: string, body: string): string | undefined {
  const part = /^key=([0-9a-f]{16}), time=(\d+), hmac=([0-9a-f]{64})$/.exec(signature)
  if (part === null) return `signature ${signature}`
  const [, name, time, hmac] = part
  if (name !== key) return 'key'
  if (Math.abs(Date.now() / 1000 - Number(time)) > 300) return 'time'
  const right = createHmac('sha256', token).update(`${method}\n${target}\n${time}\n${body}`).digest()
  return timingSafeEqual(right, Buffer.from(hmac ?? '', 'hex')) ? undefined : 'hmac'
}

/** Status and fields of responses that a gateway should not give. */
const misbehaviours = { redirect: [307, { Location: '/elsewhere/changes' }], fail: [503, {}] } as const

/** The part of the admin side that the companion uses: checks signatures and collects what is pushed. */
export async function startIntake(): Promise<Intake> {
  const intake: Omit<Intake, 'origin' | 'close'> = { pushes: [], refused: [], behaviour: 'accept' }
  const accept = (method: string, target: string, signature: string, body: string): number => {
    const isPush = method === 'POST' && target === '/admin/changes'
    const wrong = isPush ? fault(signature, method, target, body) : `${method} ${target}`
    if (wrong !== undefined || body.length > 256 * 1024) {
      intake.refused.push(wrong ?? 'too long')
      return wrong === undefined ? 413 : 401
    }
    intake.pushes.push(JSON.parse(body) as Push)
    return 200
  }
  const { origin, close } = await startHttpServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const { behaviour } = intake
    if (behaviour === 'hang') return
    if (behaviour !== 'accept') {
      const [status, headers] = misbehaviours[behaviour]
      response.writeHead(status, headers).end()
      return
    }
    const signature = String(request.headers['trellis-signature'])
    const status = accept(request.method ?? '', request.url ?? '', signature, body)
    response.writeHead(status, { 'Content-Type': 'application/json' })
    response.end(
      JSON.stringify(status === 200 ? { sequence: intake.pushes.at(-1)?.sequence, dropped: 0 } : {}),
    )
  })
  return Object.assign(intake, { origin: `${origin}/admin`, close })
}

export type Poll = {
  readonly incarnation: string
  readonly first: number
  readonly last: number
  readonly fingerprint: string
  readonly more: boolean
  readonly table: string
  readonly rows: readonly {
    readonly sequence: number
    readonly check: string
    readonly site: number
    readonly state: 'open' | 'closed' | 'dead'
    readonly since?: number
    readonly changes?: readonly Change[]
  }[]
}

/** What a gateway sends every few seconds. */
export async function poll(origin: string, after: number, incarnation = '', known = ''): Promise<Poll> {
  const row = known === '' ? '' : `&known=${known}`
  const target = `/?trellis-changes=${after}&incarnation=${incarnation}${row}`
  const response = await fetch(origin + target, { headers: { 'Trellis-Signature': sign('GET', target) } })
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
  return (await response.json()) as Poll
}
