import { queryParameters } from '../../http/form-text.ts'
import { headerValue } from '../../http/headers/header-lines.ts'
import type { ResponseHead } from '../../http/message.ts'
import { isGetOrHead } from '../../http/methods.ts'
import type { ScheduledTasksReading } from '../../service/contract.ts'
import { foldPhpName } from '../arguments/php-query.ts'

const script = /\/wp-cron\.php/i

/**
 * A request for this script, a GET too, runs WordPress's scheduled tasks, which publish posts among other things. With php-fpm
 * WordPress responds before the tasks begin.
 */
export const runsTasks = (path: string): boolean => script.test(path)

const parameter = 'doing_wp_cron'

const namesOf = (query: string): readonly string[] =>
  queryParameters(query).map(([name]) => foldPhpName(name))

/** In the folder of WordPress, or in one below it. Elsewhere it may be a part of a path behind another script, or of a route. */
const plainScript = /^(?:\/[^/.;%]+)?\/wp-cron\.php$/

/** Is a request for the script one for nothing else? A POST to another script that only names this one may do anything. */
const isPlain = (path: string, query: string): boolean =>
  plainScript.test(path) && namesOf(query).every((name) => name === parameter)

/**
 * With ALTERNATE_WP_CRON the tasks run behind a redirect to the same page with the parameter; a request that has it starts none
 * (spawn_cron() in wp-includes/cron.php).
 */
const runBehind = (query: string, { status, headers }: ResponseHead): boolean => {
  if (status !== 302) return false
  const location = headerValue(headers, 'location') ?? ''
  if (!location.includes(parameter)) return false
  const [target = ''] = location.split('#', 1)
  const at = target.indexOf('?')
  return at !== -1 && namesOf(target.slice(at + 1)).includes(parameter) && !namesOf(query).includes(parameter)
}

/** `lockMs` is WP_CRON_LOCK_TIMEOUT. */
const times = { lockMs: 60_000, settleMs: 5_000 }

/** Of an interface, where the script is a part of a route's path. */
export const tasksBehindInterface: ScheduledTasksReading = { ...times, areAlone: isGetOrHead, runBehind }

/** Where only the path of a write can name the script. */
export const tasksBehindWrites: ScheduledTasksReading = {
  ...times,
  areAlone: () => false,
  runBehind: () => false,
}

/** Of pages. */
export const tasksBehindPages: ScheduledTasksReading = {
  ...times,
  areAlone: (method, path, query) => isGetOrHead(method) || isPlain(path, query),
  runBehind,
}
