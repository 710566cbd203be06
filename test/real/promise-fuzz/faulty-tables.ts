import { stringify } from 'yaml'
import { givenNames } from '../../../src/exchange/write/given-names.ts'
import { contractOf } from '../../../src/gateway/contracts.ts'
import { checkConfig } from '../../../src/gateway/load-config.ts'
import type { Contract } from '../../../src/service/contract.ts'
import type { Found } from '../../../src/service/row.ts'
import type { Tagger } from '../../../src/service/tagger.ts'
import { readIndex } from '../../../src/wordpress/index/index-document.ts'
import { learnRows } from '../../../src/wordpress/index/learn-rows.ts'
import { createSiteTagger } from '../../../src/wordpress/tags/site-tagger.ts'
import { siteTags } from '../../../src/wordpress/tags/tags.ts'
import type { WordPress } from '../wordpress/start-wordpress.ts'
import type { Plant } from './plants.ts'
import type { Outcome } from './send-write.ts'
import { type DirectResponse, type Read, type Setting, servicesFor } from './site-under-fuzz.ts'
import type { Operation, Write } from './write.ts'

/** The contract by which a gateway in that setting names what responses depend on and what writes change. */
export const siteContractOf = async (wordpress: WordPress, setting: Setting): Promise<Contract> => {
  const checked = await checkConfig(stringify({ services: servicesFor(wordpress, setting) }), {})
  if (checked.kind === 'faults') throw new Error(checked.faults.map(({ message }) => message).join('\n'))
  const service = checked.config.services.find(({ contract }) => contract === 'site')
  if (service === undefined) throw new Error('the configuration has no site')
  const contract = await contractOf(service, checked.config.limits)
  const index = readIndex(Buffer.from(await (await fetch(`${wordpress.restRoot}/`)).arrayBuffer()))
  if (index.kind === 'refused') throw new Error(index.reason)
  contract.learn(contract.rows, learnRows(index.index, contract.rows).rows)
  return contract
}

type Stored = {
  readonly read: Read
  readonly found: Found
  readonly shown: string
  readonly content: Buffer
  /** Tags by the table without a fault. */
  readonly tags: ReadonlySet<string>
  tagsBy(tagger: Tagger): readonly string[]
}

/** A response that was stored before a write, and the faults with which a gateway would keep it. */
export type Kept = {
  readonly read: Read
  /** As it was before the write. */
  readonly shown: string
  readonly plants: readonly Plant[]
}

export type FaultyTables = {
  /** Takes note of what WordPress answers, as a gateway would that stores the response. */
  store(read: Read, resolved: Read, response: DirectResponse): void
  forget(): void
  /** What the write reaches with the right table and with none of the faults; `kept` without faults is stale as it is. */
  keptAfter(write: PlainWrite, outcome: Outcome): readonly Kept[]
  /** Stored reads of a collection, which show a gateway the earlier values of an item. */
  readsOf(collection: string): readonly Read[]
}

/** One request to the interface, in the method and on the route that it has in the table. */
export type PlainWrite = Extract<Write, { door: 'rest' | 'upload' }>

export const isPlain = (write: Write): write is PlainWrite =>
  write.kind !== 'schedule' &&
  (write.door === 'upload' || (write.door === 'rest' && ['json', 'fields'].includes(write.style)))

const storable: ReadonlySet<number> = new Set([200, 404, 410])

const splitTarget = (target: string): readonly [path: string, query: string] => {
  const at = target.indexOf('?')
  return at === -1 ? [target, ''] : [target.slice(0, at), target.slice(at + 1)]
}

const reaches = (written: readonly string[], stored: Iterable<string>): boolean => {
  const tags = new Set(stored)
  return written.some((tag) => tags.has(tag))
}

/**
 * Computes for one write and all stored answers what gateways with faulty tables would keep, with the functions of the gateway. All faults
 * are looked for with the same writes; whether a gateway really answers with what it keeps is to be seen on a gateway.
 */
export const createFaultyTables = (contract: Contract, plants: readonly Plant[]): FaultyTables => {
  const { tagger } = contract
  const taggers = new Map(
    plants.map((plant) => [
      plant,
      createSiteTagger({ service: 'site', table: { ...siteTags, [plant.collection]: plant.planted } }),
    ]),
  )
  const stored = new Map<string, Stored>()

  const store: FaultyTables['store'] = (read, resolved, response) => {
    const key = JSON.stringify(read)
    stored.delete(key)
    const [path, query] = splitTarget(resolved.route)
    const found = contract.find('GET', path)
    if (found.kind !== 'found' || found.row.handledBy !== 'upstream' || !storable.has(response.status)) return
    const { row, endpoint, pathParameters } = found
    const valid = contract.validator.validate({
      method: 'GET',
      row,
      endpoint,
      pathParameters,
      query,
      contentType: undefined,
      content: undefined,
    })
    if (valid.kind !== 'valid') return
    const content = Buffer.from(response.body)
    const counts = [
      ['X-WP-Total', response.total],
      ['X-WP-TotalPages', response.pages],
    ].flatMap(([name, value]) => (typeof value === 'string' ? [name ?? '', value] : []))
    const tagsBy = (by: Tagger): readonly string[] => [
      ...by.storedTags(found, valid.arguments, { status: response.status, headers: counts, content }),
      ...(read.caller !== 'anonymous' && by.callers !== undefined ? [by.callers] : []),
    ]
    stored.set(key, { read, found, shown: response.shown, content, tags: new Set(tagsBy(tagger)), tagsBy })
  }

  const shown = (tag: string): readonly Buffer[] =>
    [...stored.values()].filter(({ tags }) => tags.has(tag)).map(({ content }) => content)

  const keptAfter: FaultyTables['keptAfter'] = (write, { status, text }) => {
    const upload: Operation = { method: 'POST', route: '/wp/v2/media' }
    const { method, route, body } = write.door === 'upload' ? upload : write.operation
    const [path, ownQuery] = splitTarget(route)
    const isTrimmed = write.door === 'rest' && write.style === 'fields'
    const query = isTrimmed ? `${ownQuery}&_fields=id` : ownQuery
    const issue = contract.find(method, path)
    const found = issue.kind === 'found' ? issue : undefined
    const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    const given = () => (write.door === 'upload' ? undefined : givenNames(query, 'application/json', content))
    const response = { status, headers: [], content: Buffer.from(text) }
    const writtenBy = (by: Tagger): readonly string[] => by.writtenTags(found, given, method, response, shown)
    const written = writtenBy(tagger)
    const concerned = [...taggers]
      .filter(([{ name, collection }]) => collection === found?.row.collection || name.includes('.filters.'))
      .map(([plant, by]) => ({ plant, by, written: writtenBy(by) }))
    return [...stored.values()].flatMap(({ read, shown, tags, tagsBy }): Kept[] => {
      if (!reaches(written, tags)) return [{ read, shown, plants: [] }]
      const blind = concerned.filter(
        ({ plant, by, written: reached }) =>
          !reaches(reached, plant.name.includes('.filters.') ? tagsBy(by) : tags),
      )
      return blind.length === 0 ? [] : [{ read, shown, plants: blind.map(({ plant }) => plant) }]
    })
  }

  return {
    store,
    forget: () => stored.clear(),
    keptAfter,
    readsOf: (collection) =>
      [...stored.values()].filter(({ found }) => found.row.collection === collection).map(({ read }) => read),
  }
}
