import type { Question, Said, Witness } from '../service/witness.ts'
import type { Ready } from './exchange.ts'
import type { Service } from './service.ts'

/** The witness of a service, or of those that share its upstream; undefined when they have several. */
const witnessOf = (service: Service): Witness | undefined => {
  if (service.witness !== undefined) return service.witness
  const [first, ...others] = service.sharing().flatMap(({ witness }) => witness ?? [])
  return others.every(({ key }) => key === first?.key) ? first : undefined
}

/** Do all changes of the request that a service may show have been dropped, or is there none? */
export const isTold = ({ witness }: Service, said: Said): boolean =>
  said.kind !== 'rows' || (witness?.key === said.key && witness.hasApplied(said.rows))

/** For a request that counts as a write. Items of a batch may share one upstream request. */
export const questionFor = ({ service, origin }: Ready): Question | undefined =>
  origin === 'batch' ? undefined : witnessOf(service)?.ask()
