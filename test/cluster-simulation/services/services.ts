import { oneOf, type Random } from '../../support/random.ts'
import { withGraphql } from './graphql.ts'
import type { Interface, Resource, SimulatedRequest } from './interface.ts'
import { openInterface } from './open.ts'
import { plantsInterface } from './plants.ts'
import { siteInterface } from './site.ts'

const interfaces: Readonly<Record<Interface['kind'], Interface>> = {
  open: openInterface,
  site: siteInterface,
  plants: plantsInterface,
}

export const interfaceOf = (kind: Interface['kind'], hasGraphql: boolean): Interface =>
  hasGraphql ? withGraphql(interfaces[kind]) : interfaces[kind]

/** All that shows an item, first the item itself. */
export const resourcesWith = (service: Interface, item: number): readonly Resource[] => {
  const own = service.item(item)
  const lists = service.lists.filter(({ items, name }) => items.includes(item) && name !== own.name)
  return [own, ...lists]
}

/** What is read of it through the cache in front. */
export const nameAtFront = ({ name }: Resource): string => `front:${name}`

export const requestFor = ({ requests }: Resource, random: Random): SimulatedRequest =>
  requests.length === 1 ? (requests[0] as SimulatedRequest) : oneOf(random, requests)
