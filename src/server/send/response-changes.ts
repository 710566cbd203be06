import type { IncomingMessage } from 'node:http'
import type { OutgoingHttpHeaders } from 'node:http2'
import type { Config } from '../../config/config.ts'
import { allowedLines, corsHeaderNames, isPreflight, preflightLines } from '../../http/headers/cors.ts'
import {
  type HeaderChanges,
  type HeaderLines,
  linesText,
  withChanges,
} from '../../http/headers/header-lines.ts'
import { memoize, memoizeByObject } from '../../http/memo.ts'
import type { HeadText } from '../../http/response-text.ts'
import { ownText } from '../../http/retained.ts'
import { headersOf, PreparedHeaders } from './http2-headers.ts'

/** What all responses of a service to one kind of origin have in common, made once: `cors`, then its `responseHeaders`. */
export type ResponseChanges = {
  /** Of lines as `HeaderLines`. */
  headerLines(lines: HeaderLines): HeaderLines
  /** Of checked lines, as text. */
  text(head: HeadText): string
  /** Of checked lines, for HTTP/2. */
  headers(head: HeadText, status: number): OutgoingHttpHeaders
}

const nothing: HeaderChanges = { set: [], removed: new Set() }

/** The value of Vary with Origin in it. */
const withOrigin = memoize((value: string): string => {
  const names = value.split(',').flatMap((name) => name.trim() || [])
  return (names.some((name) => name.toLowerCase() === 'origin') ? names : [...names, 'Origin']).join(', ')
})

const compile = (corsLines: HeaderLines, changes: HeaderChanges, removesCors: boolean): ResponseChanges => {
  const set = withChanges(corsLines, changes)
  const removed = removesCors ? new Set([...corsHeaderNames, ...changes.removed]) : changes.removed
  const varies = removesCors && !changes.removed.has('vary')
  const setText = linesText(set)
  // Names are tokens (RFC 9110 §5.1), of which `.`, `*` and others mean something else in a pattern.
  const names = [...removed].map((name) => name.replace(/[.*+?^$|]/g, '\\$&'))
  const removedLine = new RegExp(
    `^(?:${names.join('|')}${varies ? '|(vary)' : ''}): ([^\\r\\n]*)\\r\\n`,
    'gim',
  )
  /** Many responses begin with the same lines; behind them are only lines of the gateway. */
  const changed = memoizeByObject(({ text }: HeadText) => {
    const vary: string[] = []
    const keptText = text.replace(removedLine, (_line, ...groups: (string | undefined)[]) => {
      if (varies && groups[0] !== undefined) vary.push(groups[1] as string)
      return ''
    })
    return {
      text: ownText(
        varies ? `${keptText}Vary: ${withOrigin(vary.join(','))}\r\n${setText}` : keptText + setText,
      ),
    }
  })
  const changedLines = (lines: HeaderLines): HeaderLines => {
    const sentLines: string[] = []
    const vary: string[] = []
    for (let i = 0; i < lines.length; i += 2) {
      const [name, value] = [lines[i] as string, lines[i + 1] as string]
      const lowerName = name.toLowerCase()
      if (varies && lowerName === 'vary') vary.push(value)
      else if (!removed.has(lowerName)) sentLines.push(name, value)
    }
    if (varies) sentLines.push('Vary', withOrigin(vary.join(',')))
    sentLines.push(...set)
    return sentLines
  }
  const preparedFor = memoizeByObject(
    ({ of }: HeadText) => new PreparedHeaders(changedLines(of), of.length, changes.removed),
  )
  return {
    headerLines: changedLines,
    text: (head) => {
      if (head.begin === undefined) return changed(head).text
      const gatewayLines = changes.removed.size === 0 ? head.text : head.text.replace(removedLine, '')
      return changed(head.begin).text + gatewayLines
    },
    headers: ({ of, begin }, status) =>
      begin === undefined ? headersOf(changedLines(of), status) : preparedFor(begin).headersFor(of, status),
  }
}

type Kinds = {
  readonly ofOthers: ResponseChanges | undefined
  readonly byOrigin: ReadonlyMap<string, ResponseChanges>
}

/** By kind of origin: none or refused, and each that is allowed; `*` allows all, also requests without one. */
const kindsOf = (
  cors: Config['cors'] | undefined,
  forAllowed: HeaderLines,
  changes: HeaderChanges,
): Kinds => {
  if (cors === undefined)
    return { ofOthers: changes === nothing ? undefined : compile([], changes, false), byOrigin: new Map() }
  const allow = (origin: string): ResponseChanges =>
    compile(['Access-Control-Allow-Origin', origin, ...forAllowed], changes, true)
  if (cors.origins.includes('*')) return { ofOthers: allow('*'), byOrigin: new Map() }
  const byOrigin = new Map(cors.origins.map((origin) => [origin, allow(origin)]))
  return { ofOthers: compile([], changes, true), byOrigin }
}

/** The changes for a response; undefined: it has none. Preflights are answered with these alone. */
export type ChangesFor = (
  changes: HeaderChanges | undefined,
  incoming: IncomingMessage,
) => ResponseChanges | undefined

/** `cors` undefined: the upstream's CORS headers pass through. */
export const createChangesFor = (cors: Config['cors'] | undefined): ChangesFor => {
  const forAllowed = cors === undefined ? [] : allowedLines(cors)
  const ofPreflights = cors === undefined ? [] : preflightLines(cors)
  const kindsFor = memoizeByObject((changes: HeaderChanges) => kindsOf(cors, forAllowed, changes))
  const kindsForPreflights = memoizeByObject((changes: HeaderChanges) =>
    kindsOf(cors, [...forAllowed, ...ofPreflights], changes),
  )
  return (changes = nothing, incoming) => {
    const kinds =
      cors !== undefined && isPreflight(incoming.method, incoming.headers)
        ? kindsForPreflights(changes)
        : kindsFor(changes)
    const { origin } = incoming.headers
    return (origin === undefined ? undefined : kinds.byOrigin.get(origin)) ?? kinds.ofOthers
  }
}
