// The frame around every page: navigation, the state of the event stream, the settings for times and colours, and the
// user.

import { type ReactNode, useState } from "react";
import { Link, useLocation } from "wouter";
import { Button } from "../shared/button.js";
import { Connection } from "./connection.js";
import { KeyHelp, useGlobalKeys } from "./keys.js";
import { Logout } from "./logout.js";
import { PAGES } from "./pages.js";
import { PausedLine } from "./pause-all.js";
import { ThemeSwitch, ZoneSwitch } from "./switches.js";

export function Frame({ children }: { readonly children: ReactNode }) {
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  useGlobalKeys({ help: () => setHelpOpen(true) });
  return (
    <div className="mx-auto min-h-dvh max-w-[1500px] md:grid md:grid-cols-[12.5rem_minmax(0,1fr)]">
      <a
        href="#content"
        className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50 focus:bg-surface focus:p-2"
      >
        Skip to the content
      </a>
      <div className="border-line max-md:border-b md:sticky md:top-0 md:flex md:h-dvh md:flex-col">
        <div className="flex items-center justify-between gap-2 px-4 py-3 md:pt-5">
          <Link href="/" className="flex items-center gap-2 font-semibold tracking-tight">
            <Logo />
            Holdfast
          </Link>
          <div className="flex items-center gap-1 md:hidden">
            <Connection isShort />
            <Button
              kind="quiet"
              aria-expanded={isMenuOpen}
              aria-controls="menu"
              onClick={() => setMenuOpen(!isMenuOpen)}
            >
              Menu
            </Button>
          </div>
        </div>
        <div
          id="menu"
          className={`${isMenuOpen ? "" : "max-md:hidden"} flex-1 md:flex md:min-h-0 md:flex-col`}
        >
          <Navigation onGo={() => setMenuOpen(false)} />
          <div className="grid gap-2 px-4 py-4 text-xs">
            <div className="max-md:hidden">
              <Connection />
            </div>
            <ZoneSwitch />
            <ThemeSwitch />
            <div className="flex items-center justify-between">
              <button type="button" className="link" onClick={() => setHelpOpen(true)}>
                Keys <kbd className="font-mono">?</kbd>
              </button>
              <Logout />
            </div>
          </div>
        </div>
      </div>
      <main
        id="content"
        className="min-w-0 border-line px-3 py-4 sm:px-6 md:min-h-dvh md:border-l md:py-6"
      >
        <PausedLine />
        {children}
      </main>
      {isHelpOpen ? <KeyHelp onClose={() => setHelpOpen(false)} /> : null}
    </div>
  );
}

function Navigation({ onGo }: { readonly onGo: () => void }) {
  const [location] = useLocation();
  return (
    <nav aria-label="Pages" className="flex-1 overflow-y-auto px-2 md:py-2">
      {PAGES.map((group) => (
        <ul key={group.name} className="mb-3">
          {group.pages.map(({ path, name }) => {
            const isHere = path === "/" ? location === "/" : location.startsWith(path);
            return (
              <li key={path}>
                <Link
                  href={path}
                  onClick={onGo}
                  aria-current={isHere ? "page" : undefined}
                  className={`block rounded-md px-2.5 py-1.5 ${isHere ? "bg-sunken font-medium text-ink" : "text-muted hover:bg-sunken/70 hover:text-ink"}`}
                >
                  {name}
                </Link>
              </li>
            );
          })}
        </ul>
      ))}
    </nav>
  );
}

function Logo() {
  return (
    <svg viewBox="0 0 32 32" className="size-6" aria-hidden="true">
      <rect width="32" height="32" rx="8" className="fill-accent" />
      <path
        d="M10 8v16M22 8v16M10 16h12"
        className="fill-none stroke-on-accent"
        strokeWidth="3.2"
        strokeLinecap="round"
      />
      <circle cx="16" cy="16" r="3.4" className="fill-late" />
    </svg>
  );
}
