"""Bridges to other packages; each module needs the package it is named after."""
