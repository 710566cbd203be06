import { type CookieRow, createCookieTable } from '../cache/cookies.ts'

const rows: readonly CookieRow[] = [
  // Read by scripts of WordPress and WooCommerce; a cart has woocommerce_items_in_cart.
  { meaning: 'harmless', names: ['wordpress_test_cookie', 'wp-settings-*', 'woocommerce_cart_hash'] },
  { meaning: 'login', names: ['wordpress_*'], isIdentifying: true },
  { meaning: 'post password', names: ['wp-postpass_*'], isIdentifying: true, isOfMany: true },
  { meaning: 'comment author', names: ['comment_author_*'], isIdentifying: true },
  { meaning: 'shop session', names: ['wp_woocommerce_session_*'], isIdentifying: true },
  {
    meaning: 'cart',
    names: ['woocommerce_items_in_cart'],
    isOfMany: true,
    // WooCommerce empties a cart by the value 0.
    isEmpty: (pair) => /=\s*0?\s*$/.test(pair),
  },
  { meaning: 'recently viewed products', names: ['woocommerce_recently_viewed'], isOfMany: true },
  { meaning: 'session', names: ['phpsessid'] },
  {
    meaning: 'language',
    names: ['pll_language', 'wp-wpml_current_language', 'qtrans_front_language'],
    isOfMany: true,
  },
]

/** The use of a cookie in WordPress and its usual plugins, which may be behind a service of any contract. */
export const siteCookies = createCookieTable(rows)
