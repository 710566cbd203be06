import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { isJsonObject, type JsonObject, ownMember, parsedJson, visitMembers } from '../../http/json-text.ts'
import type { Change, ChangedStates, MaybeState } from '../../service/tagger.ts'

/** The parts of a request that are signed; `target` is the path with its query, exactly as sent. */
type SignedRequest = {
  readonly method: string
  readonly target: string
  readonly body: string | Buffer
}

export type SignatureRefusal = 'malformed' | 'unknown-key' | 'expired' | 'wrong-hmac'

/** Clocks of two machines differ by less, and a request is not older when it arrives. */
const maxSecondsOff = 300

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Names a token without revealing it. */
export const keyOf = (token: string): string => digest(token).toString('hex').slice(0, 16)

const hmacOf = (token: string, { method, target, body }: SignedRequest, time: number): string =>
  createHmac('sha256', token).update(`${method}\n${target}\n${time}\n`).update(body).digest('hex')

/** The value of Trellis-Signature. */
export const signatureOf = (token: string, request: SignedRequest, nowMs: number): string => {
  const time = Math.floor(nowMs / 1000)
  return `key=${keyOf(token)}, time=${time}, hmac=${hmacOf(token, request, time)}`
}

const form = /^key=([0-9a-f]{16}), ?time=(\d{1,12}), ?hmac=([0-9a-f]{64})$/

const isSame = (first: string, second: string): boolean => timingSafeEqual(digest(first), digest(second))

type Refused = { readonly kind: 'refused'; readonly reason: SignatureRefusal }

/** The token that Trellis-Signature names, as far as that is known before the content has arrived. */
export const namedToken = (
  signature: string,
  tokens: readonly string[],
  nowMs: number,
):
  | { readonly kind: 'named'; readonly token: string; readonly time: number; readonly hmac: string }
  | Refused => {
  const [, key, time, hmac = ''] = form.exec(signature) ?? []
  if (key === undefined) return { kind: 'refused', reason: 'malformed' }
  const token = tokens.find((candidate) => keyOf(candidate) === key)
  if (token === undefined) return { kind: 'refused', reason: 'unknown-key' }
  const isCurrent = Math.abs(nowMs / 1000 - Number(time)) <= maxSecondsOff
  return isCurrent
    ? { kind: 'named', token, time: Number(time), hmac }
    : { kind: 'refused', reason: 'expired' }
}

/** Checks Trellis-Signature against the tokens that are known; gives the token that signed the request. */
export const verifiedToken = (
  signature: string,
  request: SignedRequest,
  tokens: readonly string[],
  nowMs: number,
): { readonly kind: 'verified'; readonly token: string } | Refused => {
  const reading = namedToken(signature, tokens, nowMs)
  if (reading.kind === 'refused') return reading
  const { token, time, hmac } = reading
  return isSame(hmac, hmacOf(token, request, time))
    ? { kind: 'verified', token }
    : { kind: 'refused', reason: 'wrong-hmac' }
}

/** The token that a bearer sends, in constant time for each of the tokens. */
export const tokenOfBearer = (authorization: string, tokens: readonly string[]): string | undefined => {
  const [, credential] = /^bearer +(\S{1,4096})$/i.exec(authorization) ?? []
  return credential === undefined ? undefined : tokens.find((token) => isSame(credential, token))
}

/** `check` is a random value: a log that was restored and written again has another one under this sequence. '' when it has none. */
export type RowName = { readonly sequence: number; readonly check: string }

/** One row of the companion's log: the changes of one PHP request. */
export type LogRow = RowName &
  (
    | { readonly state: 'closed'; readonly changes: readonly Change[] }
    /** The PHP request has begun to write and has not ended. `reads`: what its response is made of is all that it may write. */
    | { readonly state: 'open'; readonly reads: boolean }
    /** It ended without a report of its changes. */
    | { readonly state: 'dead' }
  )

/** The response of the companion to a poll. */
export type ChangeLog = {
  /** A new or restored log has another one. */
  readonly incarnation: string
  /** Sequence of the oldest and of the newest row. */
  readonly first: number
  readonly last: number
  /** Of the versions of WordPress, its plugins and its theme. */
  readonly fingerprint: string
  readonly rows: readonly LogRow[]
  /** The response was bounded: the next poll reads later rows. */
  readonly more: boolean
}

/** The report of the companion at the end of a PHP request that wrote. */
export type Push = RowName & {
  readonly incarnation: string
  readonly fingerprint: string
  readonly changes: readonly Change[]
  /** Trellis-Request of the response that shows the state after these changes. */
  readonly request?: string
}

/** The report of a service without the companion. */
export type PlainChange = {
  readonly service: string | undefined
  readonly tags: readonly string[]
  readonly urls: readonly string[]
  readonly prefixes: readonly string[]
  readonly all: boolean
  readonly sequence: number | undefined
}

/** The text has not the form that was agreed; the message names the member. */
export class UnreadableChange extends Error {}

const refuse = (member: string, expected: string): never => {
  throw new UnreadableChange(`${member}: expected ${expected}`)
}

/** The members of an object that has no others than these. */
const membersOf = (value: unknown, name: string, names: readonly string[]): JsonObject => {
  if (!isJsonObject(value)) return refuse(name, 'an object')
  const unknown = Object.keys(value).some((member) => !names.includes(member))
  return unknown ? refuse(name, `no other members than ${names.join(', ')}`) : value
}

const wholeOf = (value: unknown, name: string): number =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : refuse(name, 'a whole number')

const longestText = 256

const textOf = (value: unknown, name: string): string =>
  typeof value === 'string' && value.length <= longestText
    ? value
    : refuse(name, `a text of at most ${longestText} characters`)

const flagOf = (value: unknown, name: string): boolean =>
  typeof value === 'boolean' ? value : refuse(name, 'true or false')

const listOf = (value: unknown, name: string, max: number): readonly unknown[] =>
  Array.isArray(value) && value.length <= max ? value : refuse(name, `a list of at most ${max}`)

const incarnationOf = (value: unknown): string =>
  typeof value === 'string' && /^[0-9a-f]{1,64}$/.test(value)
    ? value
    : refuse('incarnation', 'hexadecimal digits')

const checkOf = (value: unknown): string =>
  value === undefined || (typeof value === 'string' && /^[0-9a-f]{0,64}$/.test(value))
    ? (value ?? '')
    : refuse('check', 'hexadecimal digits')

const requestOf = (value: unknown): string =>
  typeof value === 'string' && /^[0-9a-f]{16}$/.test(value)
    ? value
    : refuse('request', '16 hexadecimal digits')

/** Terms are lists in an object in a state. More levels would end in a stack overflow elsewhere. */
const maxLevels = 4

const isFlat = (value: unknown, levels = maxLevels): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((inner) => isFlat(inner, levels - 1)))

/** A missing state is unknown; null means that there was none. */
const stateOf = (value: unknown, name: string): MaybeState => {
  const isState = value === undefined || value === null || (isJsonObject(value) && isFlat(value))
  return isState ? value : refuse(name, `an object of at most ${maxLevels} levels, or null`)
}

const statesOf = ({ before, after }: JsonObject): ChangedStates => ({
  before: stateOf(before, 'before'),
  after: stateOf(after, 'after'),
})

const maxChanges = 10_000

const readers: Readonly<Record<string, (value: unknown) => Change>> = {
  post: (value) => {
    const members = membersOf(value, 'post', ['kind', 'id', 'type', 'before', 'after'])
    return {
      kind: 'post',
      id: wholeOf(members['id'], 'id'),
      type: textOf(members['type'], 'type'),
      ...statesOf(members),
    }
  },
  term: (value) => {
    const members = membersOf(value, 'term', ['kind', 'id', 'taxonomy', 'before', 'after'])
    const taxonomy = textOf(members['taxonomy'], 'taxonomy')
    return { kind: 'term', id: wholeOf(members['id'], 'id'), taxonomy, ...statesOf(members) }
  },
  comment: (value) => {
    const members = membersOf(value, 'comment', ['kind', 'id', 'post', 'before', 'after'])
    const post = wholeOf(members['post'], 'post')
    return { kind: 'comment', id: wholeOf(members['id'], 'id'), post, ...statesOf(members) }
  },
  user: (value) => {
    const members = membersOf(value, 'user', ['kind', 'id', 'keys'])
    const id = wholeOf(members['id'], 'id')
    if (members['keys'] === undefined) return { kind: 'user', id }
    return {
      kind: 'user',
      id,
      keys: listOf(members['keys'], 'keys', 1_000).map((key) => textOf(key, 'keys')),
    }
  },
  option: (value) => {
    const members = membersOf(value, 'option', ['kind', 'name', 'posts', 'early'])
    const early = members['early'] === undefined ? {} : { early: flagOf(members['early'], 'early') }
    const option = { kind: 'option', name: textOf(members['name'], 'name'), ...early } as const
    if (members['posts'] === undefined) return option
    const posts = listOf(members['posts'], 'posts', maxChanges).map((post) => wholeOf(post, 'posts'))
    return { ...option, posts }
  },
  table: (value) => {
    const members = membersOf(value, 'table', ['kind', 'name', 'rows', 'memoized'])
    const name = textOf(members['name'], 'name')
    if (members['rows'] === undefined) return { kind: 'table', name }
    const rowsIn = (member: string) =>
      listOf(members[member], member, 1_000).map((row) => textOf(row, member))
    const memoized = members['memoized'] === undefined ? {} : { memoized: rowsIn('memoized') }
    return { kind: 'table', name, rows: rowsIn('rows'), ...memoized }
  },
  all: (value) => ({
    kind: 'all',
    reason: textOf(membersOf(value, 'all', ['kind', 'reason'])['reason'], 'reason'),
  }),
}

const changeOf = (value: unknown): Change => {
  const kind = isJsonObject(value) ? value['kind'] : undefined
  const reader = typeof kind === 'string' ? ownMember(readers, kind) : undefined
  return reader === undefined ? refuse('kind', `one of ${Object.keys(readers).join(', ')}`) : reader(value)
}

/** `site`: the blog of a network; 0 for what belongs to all of its blogs. */
const changesOf = (value: unknown, site: unknown): readonly Change[] => {
  const changes = listOf(value, 'changes', maxChanges).map(changeOf)
  const blog = site === undefined ? 1 : wholeOf(site, 'site')
  return blog === 1 ? changes : changes.map((change) => ({ ...change, blog }))
}

const parsed = (text: string): unknown => {
  const value = parsedJson(text)
  return value === undefined ? refuse('the body', 'JSON') : value
}

/** The members of a report. JSON.parse would take the last one of a name, and the changes in the others would be lost. */
const membersOfReport = (body: Buffer, names: readonly string[]): JsonObject => {
  const text = body.toString('utf8')
  const members = membersOf(parsed(text), 'the body', names)
  let count = 0
  visitMembers(text, () => {
    count += 1
  })
  return count === Object.keys(members).length ? members : refuse('the body', 'each member once')
}

/** A change of everything, where the single changes are not known. */
export const everything = (reason: string): readonly Change[] => [{ kind: 'all', reason }]

/** Is it of no row of a log? Then two changes may have the same text; also of a push that cannot be read. */
export const isWithoutRow = (body: Buffer): boolean => {
  const content = parsedJson(body.toString('utf8'))
  return isJsonObject(content) && content['sequence'] === 0
}

/** Reads the content of a push; throws UnreadableChange. */
export const readPush = (body: Buffer): Push => {
  const members = membersOfReport(body, [
    ...['incarnation', 'site', 'sequence', 'check', 'previous', 'fingerprint', 'changes', 'overflow'],
    'request',
  ])
  const isOverflow = members['overflow'] !== undefined && flagOf(members['overflow'], 'overflow')
  if (members['previous'] !== undefined) wholeOf(members['previous'], 'previous')
  const changes = changesOf(members['changes'] ?? [], members['site'])
  return {
    incarnation: incarnationOf(members['incarnation']),
    sequence: wholeOf(members['sequence'], 'sequence'),
    check: checkOf(members['check']),
    fingerprint: textOf(members['fingerprint'] ?? '', 'fingerprint'),
    changes: isOverflow ? everything('overflow') : changes,
    ...(members['request'] === undefined ? {} : { request: requestOf(members['request']) }),
  }
}

/** Changes of a closed row that cannot be read count as a change of everything. */
const closedChanges = (row: JsonObject): readonly Change[] => {
  if (row['overflow'] === true) return everything('overflow')
  try {
    return changesOf(row['changes'], row['site'])
  } catch {
    return everything('unreadable')
  }
}

const rowOf = (value: unknown): LogRow => {
  if (!isJsonObject(value)) return refuse('rows', 'objects')
  const name = { sequence: wholeOf(value['sequence'], 'sequence'), check: checkOf(value['check']) }
  switch (value['state']) {
    case 'closed':
      return { ...name, state: 'closed', changes: closedChanges(value) }
    case 'open':
      return { ...name, state: 'open', reads: value['reads'] === true }
    case 'dead':
      return { ...name, state: 'dead' }
    default:
      return refuse('state', 'closed, open or dead')
  }
}

const maxRows = 10_000

/** Reads the response to the poll with this nonce; throws UnreadableChange. */
export const readChangeLog = (body: Buffer, nonce: string): ChangeLog => {
  const value = parsed(body.toString('utf8'))
  const response = isJsonObject(value) ? value : refuse('the body', 'an object')
  // A copy from a cache on the way lacks the changes since then.
  if (response['nonce'] !== nonce) return refuse('nonce', 'the one of the poll')
  return {
    incarnation: incarnationOf(response['incarnation']),
    first: wholeOf(response['first'], 'first'),
    last: wholeOf(response['last'], 'last'),
    fingerprint: textOf(response['fingerprint'], 'fingerprint'),
    rows: listOf(response['rows'], 'rows', maxRows).map(rowOf),
    more: flagOf(response['more'], 'more'),
  }
}

const maxNamed = 1_000
const longestName = 8_192

const namesOf = (value: unknown, name: string): readonly string[] =>
  listOf(value ?? [], name, maxNamed).map((text) =>
    typeof text === 'string' && text !== '' && text.length <= longestName
      ? text
      : refuse(name, `texts of 1 to ${longestName} characters`),
  )

/** Reads the plain form; throws UnreadableChange. A misspelt member must not turn into a smaller change. */
export const readPlainChange = (body: Buffer): PlainChange => {
  const members = membersOfReport(body, [
    ...['service', 'tags', 'urls', 'prefixes', 'all', 'sequence', 'incarnation'],
  ])
  if (members['incarnation'] !== undefined) textOf(members['incarnation'], 'incarnation')
  const change: PlainChange = {
    service: members['service'] === undefined ? undefined : textOf(members['service'], 'service'),
    tags: namesOf(members['tags'], 'tags'),
    urls: namesOf(members['urls'], 'urls'),
    prefixes: namesOf(members['prefixes'], 'prefixes'),
    all: members['all'] !== undefined && flagOf(members['all'], 'all'),
    sequence: members['sequence'] === undefined ? undefined : wholeOf(members['sequence'], 'sequence'),
  }
  const isEmpty =
    !change.all && [change.tags, change.urls, change.prefixes].every(({ length }) => length === 0)
  return isEmpty ? refuse('the body', 'at least one of tags, urls, prefixes, all') : change
}
